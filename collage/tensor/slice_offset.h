#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "collage/tensor/layout.h"

namespace collage {

/// Where the elements from `begin` along an axis, `extent` of them, begin in a tensor: bytes from its first. Nothing where they do not lie
/// there one after another, as a tensor of their own in the same layout would: where an outer dimension has several elements, or where
/// they are no whole blocks. The layout must fit the type.
std::optional<size_t> SliceOffset(const TensorType& whole, const Layout& layout, size_t axis, int64_t begin, int64_t extent);

}  // namespace collage
