#include "collage/op/families.h"
#include "collage/op/kernels.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

Result<Type> SoftmaxType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  COLLAGE_TRY_STATUS(ExpectFloat(data, "data"));
  COLLAGE_TRY(NormaliseAxis(IntAttribute(attributes, "axis", -1), data.shape.size()));
  return Type(data);
}

OpDef Softmax(std::string name, std::string summary, OpDef::ReferenceKernel reference) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .argument_names = {"data"},
          .attributes = {{"axis", "int", "dimension along which the exponentials sum to 1, default -1"}},
          .kind = OpKind::kOutElementwiseFusable,
          .infer_type = SoftmaxType,
          .work = WorkPerOutput(5),
          .reference = std::move(reference)};
}

}  // namespace

void AddSoftmaxOperators(OpTable& table) {
  Register(table, Softmax("nn.softmax", "exp(data) divided by its sum along an axis.", ReferenceSoftmax));
  Register(table, Softmax("nn.log_softmax", "Natural logarithm of nn.softmax.", ReferenceLogSoftmax));
}

}  // namespace collage
