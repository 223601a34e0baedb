#pragma once

#include <vector>

#include "collage/ir/attributes.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor_type.h"

namespace collage {

/// Geometry of a reduction: which axes go (axis, exclude) and what shape remains (keepdims).
struct Reduction {
  std::vector<bool> reduced;  ///< one an axis of the data
  Shape result;
};

/// After a call has been made it cannot fail on its argument.
Result<Reduction> ReadReduction(const TensorType& data, const Attributes& attributes);

}  // namespace collage
