#include "collage/support/memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>

#include "collage/support/check.h"
#include "collage/support/control_group.h"
#include "collage/support/mappings.h"
#include "collage/support/sanitizers.h"

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

/// Pages of its own, from a huge page's beginning. The kernel zeroes them.
std::shared_ptr<std::byte> AllocatePages(size_t bytes) {
  const size_t whole = RoundUp(bytes, kHugePage);
  void* mapped = ::mmap(nullptr, whole + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  COLLAGE_CHECK(mapped != MAP_FAILED, "out of memory");
  auto* begin = static_cast<std::byte*>(mapped);
  const auto address = reinterpret_cast<uintptr_t>(begin);
  std::byte* memory = begin + (RoundUp(address, kHugePage) - address);
  std::byte* end = memory + whole;
  if (memory > begin) ::munmap(begin, static_cast<size_t>(memory - begin));
  if (end < begin + whole + kHugePage) ::munmap(end, static_cast<size_t>(begin + whole + kHugePage - end));
  ::madvise(memory, whole, MADV_HUGEPAGE);
  for (size_t at = 0; at < whole; at += static_cast<size_t>(::sysconf(_SC_PAGESIZE))) memory[at] = std::byte{0};
  AddMapping(memory, whole, MappingKind::kMemory);
  return {memory, [whole](std::byte* address) {
            RemoveMappings(address, whole);
            ::munmap(address, whole);
          }};
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
#if COLLAGE_ADDRESS_SANITIZER
  // The sanitizer does not see what is read or written beyond the ends of a mapping.
  return AllocateAligned(bytes, kBufferAlignment);
#endif
  return bytes >= 2 * kHugePage ? AllocatePages(bytes) : AllocateAligned(bytes, kBufferAlignment);
}

std::shared_ptr<std::byte> AllocateWeights(size_t bytes) {
#if COLLAGE_ADDRESS_SANITIZER
  // Pieces of one chunk would hide from the sanitizer what is read or written beyond their ends.
  return AllocateBuffer(bytes);
#endif
  static ChunkedMemory chunks;
  return bytes > ChunkedMemory::kChunk / 4 ? AllocatePages(bytes) : chunks.Take(bytes);
}

void TrimHeap() { ::malloc_trim(0); }

size_t UsableMemory() {
  // Read once: what opens a program asks for each of its kernels.
  static const size_t usable = [] {
    const size_t machine = static_cast<size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    return std::min(machine, ReadControlGroupLimits().memory.value_or(machine));
  }();
  return usable;
}

size_t FreeMemory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::string unit;
  for (size_t kilobytes = 0; file >> name >> kilobytes; std::getline(file, unit)) {
    if (name == "MemAvailable:") return std::min(kilobytes << 10, ReadControlGroupLimits().free_memory.value_or(kilobytes << 10));
  }
  return UsableMemory();
}

}  // namespace collage
