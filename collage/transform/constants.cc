#include "collage/transform/constants.h"

#include <algorithm>

namespace collage {

const Tensor* AsConstant(const Expr& expr) {
  const Constant* constant = expr->As<Constant>();
  return constant ? &constant->value : nullptr;
}

bool IsConstantOf(const Expr& expr, double value) {
  const Tensor* tensor = AsConstant(expr);
  if (!tensor || tensor->ElementCount() == 0) return false;
  bool all = false;
  VisitElementType(tensor->dtype(), [&](auto element) {
    const auto values = tensor->Values<decltype(element)>();
    all = std::all_of(values.begin(), values.end(), [&](auto item) { return static_cast<double>(item) == value; });
  });
  return all;
}

bool IsByte(const Expr& expr) {
  const TensorType* type = expr->type().AsTensor();
  return type && (type->dtype == DType::kInt8 || type->dtype == DType::kUInt8);
}

bool HasOneScale(const Expr& expr) { return expr->As<Call>()->args[1]->type().AsTensor()->shape.empty(); }

Expr MakeFloatConstant(TensorType type, const std::vector<double>& values) {
  if (type.dtype == DType::kFloat64) return MakeConstant(Tensor::FromVector<double>(std::move(type), values));
  COLLAGE_CHECK(type.dtype == DType::kFloat32);
  return MakeConstant(Tensor::FromVector<float>(std::move(type), std::vector<float>(values.begin(), values.end())));
}

std::optional<std::vector<double>> FloatValues(const Expr& expr) {
  const Tensor* tensor = AsConstant(expr);
  if (!tensor || (tensor->dtype() != DType::kFloat32 && tensor->dtype() != DType::kFloat64)) return std::nullopt;
  return tensor->ToDouble();
}

std::optional<std::vector<double>> PerChannelValues(const Expr& expr, const Shape& shape, size_t axis) {
  const Tensor* tensor = AsConstant(expr);
  if (!tensor || tensor->shape().size() > shape.size()) return std::nullopt;
  const size_t missing = shape.size() - tensor->shape().size();
  for (size_t i = 0; i < tensor->shape().size(); ++i) {
    const int64_t extent = tensor->shape()[i];
    if (extent != 1 && (i + missing != axis || extent != shape[axis])) return std::nullopt;
  }
  return FloatValues(expr);
}

}  // namespace collage
