#pragma once

// Geometry of the operators that move blocks of a tensor, read once from types and attributes.

#include <array>
#include <vector>

#include "collage/ir/attributes.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor_type.h"

namespace collage {

/// strided_slice for every dimension of the data: element i of the result is element begin + i * stride.
struct Slice {
  std::vector<int64_t> begin;
  std::vector<int64_t> stride;
  Shape result;
};

/// After a call has been made none of these can fail on its arguments.
/// begin and end as NumPy reads them: negative ones count from the end, both are clamped to the data.
Result<Slice> ReadSlice(const TensorType& data, const Attributes& attributes);
/// Of a tensor that is split: each is a value with a type of its own, so a model of more would not end in reading.
inline constexpr int64_t kMostParts = 1 << 20;
/// Extents of the parts of split along its axis, kMostParts at most.
Result<std::vector<int64_t>> ReadSplit(const TensorType& data, const Attributes& attributes);
/// nn.pad: elements before and after, one entry a dimension.
Result<std::vector<std::array<int64_t, 2>>> ReadPadWidth(const TensorType& data, const Attributes& attributes);
/// transpose: axes counted from the front; reversed order where the attribute is absent.
Result<std::vector<size_t>> ReadPermutation(const TensorType& data, const Attributes& attributes);

}  // namespace collage
