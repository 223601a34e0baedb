#include "collage/runtime/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "collage/support/check.h"

namespace collage {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

void Arena::Free::operator()(std::byte* memory) const { std::free(memory); }

Arena::Arena(size_t bytes) : bytes_(bytes) {
  const size_t alignment = bytes >= kHugePage ? kHugePage : 64;
  const size_t whole = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, whole)));
  COLLAGE_CHECK(data_ != nullptr, "out of memory");
  if (alignment == kHugePage) ::madvise(data_.get(), whole, MADV_HUGEPAGE);
  std::memset(data_.get(), 0, whole);
}

}  // namespace collage
