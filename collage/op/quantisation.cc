#include <cmath>
#include <limits>

#include "collage/op/axis_view.h"
#include "collage/op/families.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

/// Scale and zero point are one number each, or vectors along the axis of the data.
Status CheckParameters(const TensorType& data, const TensorType& scale, const char* scale_name, const TensorType& zero_point,
                       const char* zero_point_name, const Attributes& attributes) {
  COLLAGE_TRY_STATUS(ExpectFloat(scale, scale_name));
  COLLAGE_TRY_STATUS(ExpectShape(zero_point, zero_point_name, scale.shape));
  if (scale.shape.empty()) return {};
  const size_t axis = COLLAGE_TRY(NormaliseAxis(IntAttribute(attributes, "axis", -1), data.shape.size()));
  return ExpectShape(scale, scale_name, {data.shape[axis]});
}

Result<Type> QuantizeType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const TensorType scale = COLLAGE_TRY(TensorArgument(arguments, 1, "output_scale"));
  const TensorType zero_point = COLLAGE_TRY(TensorArgument(arguments, 2, "output_zero_point"));
  COLLAGE_TRY_STATUS(ExpectFloat(data, "data"));
  COLLAGE_TRY_STATUS(ExpectInteger(zero_point, "output_zero_point"));
  COLLAGE_TRY_STATUS(CheckParameters(data, scale, "output_scale", zero_point, "output_zero_point", attributes));
  return Type(TensorType{data.shape, zero_point.dtype});
}

Result<Type> DequantizeType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const TensorType scale = COLLAGE_TRY(TensorArgument(arguments, 1, "input_scale"));
  const TensorType zero_point = COLLAGE_TRY(TensorArgument(arguments, 2, "input_zero_point"));
  COLLAGE_TRY_STATUS(ExpectInteger(data, "data"));
  COLLAGE_TRY_STATUS(ExpectSameDType(zero_point, "input_zero_point", data, "data"));
  COLLAGE_TRY_STATUS(CheckParameters(data, scale, "input_scale", zero_point, "input_zero_point", attributes));
  return Type(TensorType{data.shape, scale.dtype});
}

/// Calls `visit(place in the data, place in the parameters)` for each element.
template <class Visitor>
void VisitWithParameters(const Shape& shape, const Tensor& scale, const Attributes& attributes, Visitor&& visit) {
  if (scale.shape().empty()) {
    for (int64_t i = 0; i < ElementCount(shape); ++i) visit(i, 0);
    return;
  }
  const AxisView view(shape, AxisAttribute(attributes, "axis", -1, shape.size()));
  int64_t place = 0;
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    for (int64_t channel = 0; channel < view.extent; ++channel) {
      for (int64_t inner = 0; inner < view.inner; ++inner) visit(place++, channel);
    }
  }
}

void QuantizeKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  const std::vector<double> data = inputs[0].ToDouble();
  const std::vector<double> scale = inputs[1].ToDouble();
  VisitNumberType(outputs[0].dtype(), [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_integral_v<T>) {
      const T* zero_point = inputs[2].Data<T>();
      T* result = outputs[0].MutableData<T>();
      const auto low = static_cast<double>(std::numeric_limits<T>::lowest());
      const auto high = static_cast<double>(std::numeric_limits<T>::max());
      VisitWithParameters(inputs[0].shape(), inputs[1], attributes, [&](int64_t i, int64_t parameter) {
        const auto p = static_cast<size_t>(parameter);
        // The quotient is that of float32, in which a model's author has seen ties.
        const float quotient = static_cast<float>(data[static_cast<size_t>(i)]) / static_cast<float>(scale[p]);
        const double value = std::nearbyint(static_cast<double>(quotient)) + static_cast<double>(zero_point[parameter]);
        result[i] = value >= high ? std::numeric_limits<T>::max() : value > low ? static_cast<T>(value) : std::numeric_limits<T>::lowest();
      });
    }
  });
}

void DequantizeKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  const std::vector<int64_t> data = inputs[0].ToInt64();
  const std::vector<int64_t> zero_point = inputs[2].ToInt64();
  VisitFloatType(outputs[0].dtype(), [&](auto element) {
    using T = decltype(element);
    const T* scale = inputs[1].Data<T>();
    T* result = outputs[0].MutableData<T>();
    VisitWithParameters(inputs[0].shape(), inputs[1], attributes, [&](int64_t i, int64_t parameter) {
      const int64_t distance = data[static_cast<size_t>(i)] - zero_point[static_cast<size_t>(parameter)];
      result[i] = static_cast<T>(static_cast<double>(distance) * static_cast<double>(scale[parameter]));
    });
  });
}

}  // namespace

void AddQuantisationOperators(OpTable& table) {
  const AttributeSpec axis{"axis", "int", "dimension of data along which vectors of scales lie, default -1"};
  Register(table, {.name = "qnn.quantize",
                   .summary = "round(data / output_scale) + output_zero_point, halves to the even one, as the dtype of "
                              "output_zero_point; out of range to the nearest end.",
                   .argument_names = {"data", "output_scale", "output_zero_point"},
                   .attributes = {axis},
                   .kind = OpKind::kBroadcast,
                   .infer_type = QuantizeType,
                   .work = WorkPerOutput(3),
                   .reference = QuantizeKernel});
  Register(table, {.name = "qnn.dequantize",
                   .summary = "(data - input_zero_point) * input_scale.",
                   .argument_names = {"data", "input_scale", "input_zero_point"},
                   .attributes = {axis},
                   .kind = OpKind::kBroadcast,
                   .infer_type = DequantizeType,
                   .work = WorkPerOutput(2),
                   .reference = DequantizeKernel});
}

}  // namespace collage
