#include "tests/runtime/counting_new.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace collage {
namespace {

std::atomic<size_t> allocations{0};

void* Allocate(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}

}  // namespace

size_t AllocationCount() { return allocations; }

}  // namespace collage

void* operator new(size_t size) { return collage::Allocate(size); }
void* operator new[](size_t size) { return collage::Allocate(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return collage::Allocate(size); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return collage::Allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
