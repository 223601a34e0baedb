#include "collage/support/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "collage/support/check.h"

namespace collage {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

size_t RoundUp(size_t bytes, size_t alignment) { return (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment; }

std::shared_ptr<std::byte> AllocateAligned(size_t bytes, size_t alignment) {
  const size_t whole = RoundUp(bytes, alignment);
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(alignment, whole));
  COLLAGE_CHECK(memory != nullptr, "out of memory");
  if (alignment == kHugePage) ::madvise(memory, whole, MADV_HUGEPAGE);
  std::memset(memory, 0, whole);
  return {memory, [](std::byte* address) { std::free(address); }};
}

/// Hands out pieces of one chunk after the other, and never the same piece twice.
class ChunkedMemory {
 public:
  std::shared_ptr<std::byte> Take(size_t bytes) {
    const size_t rounded = RoundUp(bytes, kBufferAlignment);
    const std::scoped_lock lock(mutex_);
    if (!chunk_ || used_ + rounded > kChunk) {
      chunk_ = AllocateAligned(kChunk, kHugePage);
      used_ = 0;
    }
    std::byte* piece = chunk_.get() + used_;
    used_ += rounded;
    return {chunk_, piece};
  }

  static constexpr size_t kChunk = 8 * kHugePage;

 private:
  std::mutex mutex_;
  std::shared_ptr<std::byte> chunk_;
  size_t used_ = 0;
};

}  // namespace

std::shared_ptr<std::byte> AllocateBuffer(size_t bytes) {
  return AllocateAligned(bytes, bytes >= 2 * kHugePage ? kHugePage : kBufferAlignment);
}

std::shared_ptr<std::byte> AllocateWeights(size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  // Pieces of one chunk would hide from the sanitizer what is read or written beyond their ends.
  return AllocateBuffer(bytes);
#endif
  static ChunkedMemory chunks;
  return bytes > ChunkedMemory::kChunk / 4 ? AllocateAligned(bytes, kHugePage) : chunks.Take(bytes);
}

size_t PhysicalMemory() { return static_cast<size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace collage
