#include "collage/op/reduction.h"

#include "collage/op/rules.h"

namespace collage {

Result<Reduction> ReadReduction(const TensorType& data, const Attributes& attributes) {
  const size_t rank = data.shape.size();
  const bool exclude = BoolAttribute(attributes, "exclude", false);
  const bool keepdims = BoolAttribute(attributes, "keepdims", false);
  Reduction reduction{std::vector<bool>(rank, !HasAttribute(attributes, "axis")), {}};
  for (size_t axis : COLLAGE_TRY(NormaliseAxes(IntsAttribute(attributes, "axis", {}), rank))) reduction.reduced[axis] = true;
  if (exclude) {
    if (!HasAttribute(attributes, "axis")) return Fail("attribute 'exclude' is True without 'axis', expected the axes to keep");
    reduction.reduced.flip();
  }
  for (size_t axis = 0; axis < rank; ++axis) {
    if (!reduction.reduced[axis]) {
      reduction.result.push_back(data.shape[axis]);
    } else if (keepdims) {
      reduction.result.push_back(1);
    }
  }
  return reduction;
}

}  // namespace collage
