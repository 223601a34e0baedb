#include "collage/op/axis_view.h"
#include "collage/op/binary_kernel.h"
#include "collage/op/families.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

Result<Type> CumulativeType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  COLLAGE_TRY_STATUS(ExpectNumber(data, "data"));
  COLLAGE_TRY(NormaliseAxis(IntAttribute(attributes, "axis", 0), data.shape.size()));
  return Type(data);
}

/// Folds `Function` along the axis; floating point accumulates in double.
template <class Function>
OpDef::ReferenceKernel CumulativeKernel(int start) {
  return [start](std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
    const AxisView view(inputs[0].shape(), AxisAttribute(attributes, "axis", 0, inputs[0].shape().size()));
    const bool exclusive = BoolAttribute(attributes, "exclusive", false);
    VisitNumberType(inputs[0].dtype(), [&](auto element) {
      using T = decltype(element);
      using Accumulator = std::conditional_t<std::is_floating_point_v<T>, double, T>;
      const T* data = inputs[0].Data<T>();
      T* result = outputs[0].MutableData<T>();
      for (int64_t line = 0; line < view.outer * view.inner; ++line) {
        int64_t place = line / view.inner * view.extent * view.inner + line % view.inner;
        auto accumulator = static_cast<Accumulator>(start);
        for (int64_t i = 0; i < view.extent; ++i, place += view.inner) {
          const Accumulator next = Function()(accumulator, static_cast<Accumulator>(data[place]));
          result[place] = static_cast<T>(exclusive ? accumulator : next);
          accumulator = next;
        }
      }
    });
  };
}

OpDef Cumulative(std::string name, std::string summary, OpDef::ReferenceKernel reference) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .argument_names = {"data"},
          .attributes = {{"axis", "int", "dimension along which elements are taken together, default 0"},
                         {"exclusive", "bool", "an element itself does not count, default False"}},
          .kind = OpKind::kOpaque,
          .infer_type = CumulativeType,
          .work = WorkPerOutput(1),
          .reference = std::move(reference)};
}

}  // namespace

void AddCumulativeOperators(OpTable& table) {
  Register(table, Cumulative("cumsum", "Sum of the elements up to each one along an axis; integers wrap around.",
                             CumulativeKernel<AddFunction>(0)));
  Register(table, Cumulative("cumprod", "Product of the elements up to each one along an axis; integers wrap around.",
                             CumulativeKernel<MultiplyFunction>(1)));
}

}  // namespace collage
