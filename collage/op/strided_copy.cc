#include "collage/op/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "collage/support/check.h"

namespace collage {
namespace {

template <class T>
void CopyRow(const std::byte* source, int64_t source_stride, std::byte* target, int64_t target_stride, int64_t count) {
  const T* from = reinterpret_cast<const T*>(source);
  T* to = reinterpret_cast<T*>(target);
  if (source_stride == 1 && target_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < count; ++i) to[i * target_stride] = from[i * source_stride];
}

using RowCopier = void (*)(const std::byte*, int64_t, std::byte*, int64_t, int64_t);

RowCopier CopierFor(size_t element_size) {
  switch (element_size) {
    case 1:
      return CopyRow<uint8_t>;
    case 2:
      return CopyRow<uint16_t>;
    case 4:
      return CopyRow<uint32_t>;
    default:
      COLLAGE_CHECK(element_size == 8);
      return CopyRow<uint64_t>;
  }
}

}  // namespace

void CopyStrided(const Shape& extents, const std::byte* source, const std::vector<int64_t>& source_strides, std::byte* target,
                 const std::vector<int64_t>& target_strides, size_t element_size) {
  const RowCopier copy = CopierFor(element_size);
  if (extents.empty()) return copy(source, 1, target, 1, 1);
  if (ElementCount(extents) == 0) return;
  const size_t last = extents.size() - 1;
  const auto bytes = static_cast<std::ptrdiff_t>(element_size);
  Shape index(last, 0);
  std::ptrdiff_t from = 0;
  std::ptrdiff_t to = 0;
  const int64_t rows = ElementCount(extents) / extents[last];
  for (int64_t row = 0; row < rows; ++row) {
    copy(source + from * bytes, source_strides[last], target + to * bytes, target_strides[last], extents[last]);
    for (size_t d = last; d-- > 0;) {
      from += source_strides[d];
      to += target_strides[d];
      if (++index[d] < extents[d]) break;
      from -= source_strides[d] * extents[d];
      to -= target_strides[d] * extents[d];
      index[d] = 0;
    }
  }
}

}  // namespace collage
