#pragma once

#include <cstddef>
#include <optional>

#include "collage/tensor/layout.h"

namespace collage {

/// The most that a process can address where Collage runs (x86-64 and ARM64: 47 bits): no tensor, and no sum of tensors, is larger.
inline constexpr size_t kAddressableBytes = size_t{1} << 47;

/// PhysicalByteCount for extents and blocks that came from a file. Nothing where an extent is negative, or where the product of the
/// extents (those of zero counted as one, so that no part of it overflows either) exceeds kAddressableBytes. The layout
/// must fit the type.
std::optional<size_t> CheckedByteCount(const TensorType& type, const Layout& layout);

}  // namespace collage
