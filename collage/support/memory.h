#pragma once

#include <cstddef>
#include <memory>

namespace collage {

/// Zeroed memory, 64-byte aligned, every page touched. Blocks of megabytes begin at a huge page and ask the kernel for such pages:
/// a network streams its weights once a run, and with pages of 4 KiB the walks through the page tables and the hardware prefetchers'
/// stop at each page's end cost some 5% of ResNet-50's time.
std::shared_ptr<std::byte> AllocateBuffer(size_t bytes);

/// As above, for blocks that live as long as a kernel: smaller ones share huge pages with others allocated before and after them. Such
/// pages are freed with the last block in them.
std::shared_ptr<std::byte> AllocateWeights(size_t bytes);

/// Of this machine, bytes.
size_t PhysicalMemory();

}  // namespace collage
