#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace collage {

/// Where every buffer of a kernel begins: a cache line, which is as wide as the widest vector. Vector instructions of kernels ask for it.
inline constexpr size_t kBufferAlignment = 64;

/// `bytes`, rounded up to a multiple of it.
constexpr size_t AlignedBytes(size_t bytes) { return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment; }
inline bool IsAligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % kBufferAlignment == 0; }

/// Zeroed memory, aligned, every page touched. Blocks of megabytes begin at a huge page and ask the kernel for such pages:
/// a network streams its weights once a run, and with pages of 4 KiB the walks through the page tables and the hardware prefetchers'
/// stop at each page's end cost some 5% of ResNet-50's time. They are mappings of their own (support/mappings.h).
std::shared_ptr<std::byte> AllocateBuffer(size_t bytes);

/// As above, for blocks that live as long as a kernel: smaller ones share huge pages with others allocated before and after them. Such
/// pages are freed with the last block in them.
std::shared_ptr<std::byte> AllocateWeights(size_t bytes);

/// Gives back what was freed and the heap keeps for later: as much as compilers of whole models have used, beside the weights.
void TrimHeap();

/// Of this machine, bytes, or what its control groups leave to this process (support/control_group.h).
size_t UsableMemory();
/// What of it could be had now.
size_t FreeMemory();

}  // namespace collage
