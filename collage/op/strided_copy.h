#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collage/tensor/tensor_type.h"

namespace collage {

/// Copies a block of `extents` elements of `element_size` bytes (1, 2, 4 or 8) between places described by strides in elements
/// (negative and zero ones too). Transposing, slicing, repeating, joining and cutting are all this with different strides.
void CopyStrided(const Shape& extents, const std::byte* source, const std::vector<int64_t>& source_strides, std::byte* target,
                 const std::vector<int64_t>& target_strides, size_t element_size);

}  // namespace collage
