#include "collage/support/block_allocator.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <new>

#include "collage/support/sanitizers.h"

namespace collage {
namespace {

/// Of a huge page. Blocks begin at multiples of it, so an object's address tells its block.
constexpr size_t kBlockBytes = size_t{2} << 20;
constexpr size_t kAlignment = 8;

// Where addresses are checked, every object is one of its own.
#if COLLAGE_ADDRESS_SANITIZER || COLLAGE_THREAD_SANITIZER
constexpr size_t kMostBytes = 0;
#else
constexpr size_t kMostBytes = kBlockBytes / 64;
#endif

struct Block {
  std::atomic<uint32_t> owners = 1;  // objects, and the thread that allocates from it
  uint32_t used = sizeof(Block);

  static Block* Make() {
    void* memory = ::operator new(kBlockBytes, std::align_val_t(kBlockBytes));
    ::madvise(memory, kBlockBytes, MADV_HUGEPAGE);
    return new (memory) Block;
  }
  static Block* Of(const void* object) {
    const size_t offset = reinterpret_cast<uintptr_t>(object) % kBlockBytes;
    return reinterpret_cast<Block*>(static_cast<char*>(const_cast<void*>(object)) - offset);
  }
  void Release() {
    if (owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    this->~Block();
    ::operator delete(this, std::align_val_t(kBlockBytes));
  }
};

struct Current {
  Block* block = nullptr;
  ~Current() {
    if (block) block->Release();
  }
};

}  // namespace

void* AllocateInBlock(size_t bytes) {
  if (bytes > kMostBytes) return ::operator new(bytes);
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  static thread_local Current current;
  if (!current.block || current.block->used + bytes > kBlockBytes) {
    Block* fresh = Block::Make();
    if (current.block) current.block->Release();
    current.block = fresh;
  }
  Block& block = *current.block;
  block.owners.fetch_add(1, std::memory_order_relaxed);
  void* object = reinterpret_cast<char*>(&block) + block.used;
  block.used += static_cast<uint32_t>(bytes);
  return object;
}

void FreeInBlock(const void* object, size_t bytes) {
  if (bytes > kMostBytes) return ::operator delete(const_cast<void*>(object));
  Block::Of(object)->Release();
}

}  // namespace collage
