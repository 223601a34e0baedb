#include "collage/form/rules.h"

#include <cstring>

#include "collage/op/table.h"
#include "collage/support/check.h"

namespace collage {

const std::vector<FormRule>& FormRules() {
  static const std::vector<FormRule> rules = {TransposedConvolutionForm(),
                                              TransposedConvolutionProductForm(),
                                              ShortDepthForm(),
                                              DepthAloneForm(),
                                              SiblingConvolutionsForm(),
                                              SiblingDensesForm(),
                                              SiblingProductsForm(),
                                              StridedPointwiseForm(),
                                              PointwiseProductForm(),
                                              WholePlaneForm(),
                                              PooledPointwiseForm(),
                                              GloballyPooledPointwiseForm(),
                                              MergedGroupsForm(),
                                              IntegerProductForm(),
                                              RecomputationForm()};
  return rules;
}

Result<Expr> CallOp(std::string_view op, std::vector<Expr> arguments, Attributes attributes) {
  const OpDef* def = Operators().Find(op);
  COLLAGE_CHECK(def, "no operator " + std::string(op));
  return MakeCall(def, std::move(arguments), std::move(attributes));
}

Tensor Rearranged(const Tensor& tensor, Shape shape, const std::function<int64_t(int64_t)>& source) {
  Tensor result(TensorType{std::move(shape), tensor.dtype()});
  const size_t bytes = ByteSize(tensor.dtype());
  std::byte* to = result.MutableBytes();
  for (int64_t i = 0; i < result.ElementCount(); ++i, to += bytes) {
    if (const int64_t from = source(i); from >= 0) std::memcpy(to, tensor.Bytes() + static_cast<size_t>(from) * bytes, bytes);
  }
  return result;
}

}  // namespace collage
