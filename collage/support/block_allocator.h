#pragma once

#include <cstddef>

namespace collage {

/// Memory for small objects that are made one after another in great numbers and live about equally long: they lie side by side in
/// blocks of a huge page, so that going through them goes through memory in order and through few entries of the processor's page
/// tables, and making one costs an addition. A block is given back when its last object is. Any thread may free what another has made.
void* AllocateInBlock(size_t bytes);
/// `bytes` as when it was allocated.
void FreeInBlock(const void* object, size_t bytes);

/// For std::allocate_shared and containers.
template <class T>
struct BlockAllocator {
  using value_type = T;

  BlockAllocator() = default;
  template <class Other>
  BlockAllocator(const BlockAllocator<Other>&) {}  // NOLINT(google-explicit-constructor)

  static_assert(alignof(T) <= 8);
  T* allocate(size_t count) { return static_cast<T*>(AllocateInBlock(count * sizeof(T))); }
  void deallocate(T* objects, size_t count) { FreeInBlock(objects, count * sizeof(T)); }
  friend bool operator==(const BlockAllocator&, const BlockAllocator&) { return true; }
};

}  // namespace collage
