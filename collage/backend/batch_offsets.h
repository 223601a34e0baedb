#pragma once

#include <cstdint>
#include <vector>

#include "collage/tensor/tensor_type.h"

namespace collage {

/// Where the matrix of each batch begins, in elements, in a row-major tensor of `shape` whose last two dimensions are matrices and whose
/// leading ones are broadcast to `batches`.
std::vector<int64_t> BatchOffsets(const Shape& shape, const Shape& batches);
/// The same in a tensor of any strides, in elements from its first one.
std::vector<int64_t> BatchOffsets(const Shape& shape, const std::vector<int64_t>& strides, const Shape& batches);

}  // namespace collage
