#include "collage/support/block_allocator.h"

#include <atomic>
#include <cstdint>
#include <new>

namespace collage {
namespace {

constexpr size_t kBlockBytes = 32768;

// Where addresses are checked, every object is one of its own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kMostBytes = 0;
#else
constexpr size_t kMostBytes = kBlockBytes / 8;
#endif

struct Block {
  std::atomic<uint32_t> owners = 1;  // objects, and the thread that allocates from it
  uint32_t used = sizeof(Block);

  static Block* Make() { return new (::operator new(kBlockBytes)) Block; }
  void Release() {
    if (owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    this->~Block();
    ::operator delete(this);
  }
};

/// Stands before every object.
struct Header {
  Block* block;  // null for what has memory of its own
};

struct Current {
  Block* block = nullptr;
  ~Current() {
    if (block) block->Release();
  }
};

}  // namespace

void* AllocateInBlock(size_t bytes) {
  bytes = sizeof(Header) + (bytes + alignof(Header) - 1) / alignof(Header) * alignof(Header);
  if (bytes > kMostBytes) return new (::operator new(bytes)) Header{nullptr} + 1;
  static thread_local Current current;
  if (!current.block || current.block->used + bytes > kBlockBytes) {
    Block* fresh = Block::Make();
    if (current.block) current.block->Release();
    current.block = fresh;
  }
  Block& block = *current.block;
  block.owners.fetch_add(1, std::memory_order_relaxed);
  auto* header = new (reinterpret_cast<char*>(&block) + block.used) Header{&block};
  block.used += static_cast<uint32_t>(bytes);
  return header + 1;
}

void FreeInBlock(const void* object) {
  const auto* header = static_cast<const Header*>(object) - 1;
  if (header->block) return header->block->Release();
  ::operator delete(const_cast<Header*>(header));
}

}  // namespace collage
