#pragma once

// Geometry of nn.col2im, read once from its type and attributes.

#include <cstdint>
#include <vector>

#include "collage/ir/attributes.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor_type.h"

namespace collage {

/// Blocks lie over an image as the window of a convolution steps over its data. By spatial dimension.
struct Col2Im {
  int64_t batch = 1;
  int64_t channels = 1;
  Shape image;   ///< extents of the result
  Shape blocks;  ///< how many there are
  std::vector<int64_t> kernel;
  std::vector<int64_t> stride;
  std::vector<int64_t> dilation;
  std::vector<int64_t> pad_begin;

  [[nodiscard]] int64_t Taps() const { return ElementCount(kernel); }
};

/// Checks every constraint; after a call has been made it cannot fail on its arguments.
Result<Col2Im> ReadCol2Im(const TensorType& data, const Attributes& attributes);

/// Which taps of blocks meet an element, along one dimension. At a place (counted from where the padding begins) that `divisor` divides it
/// is tap `place % stride / divisor * factor % step`, and each step-th behind it, of the block (place - tap * dilation) / stride as far as
/// there is one; at other places there is none.
struct TapsAlong {
  int64_t divisor;
  int64_t factor;
  int64_t step;
  int64_t most;  ///< so many taps meet one element at most

  TapsAlong(const Col2Im& col2im, size_t dimension);
};

}  // namespace collage
