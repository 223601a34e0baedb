#include <cmath>
#include <cstring>
#include <span>

#include "collage/onnx/direct.h"
#include "collage/onnx/rows.h"
#include "collage/tensor/narrow.h"
#include "collage/tensor/strings.h"

namespace collage::onnx_io {
namespace {

Result<std::vector<Expr>> ReadConstant(NodeReader& node) {
  if (node.HasAttribute("value")) return std::vector<Expr>{MakeConstant(COLLAGE_TRY(node.TensorAttribute("value")))};
  const auto vector_type = [](size_t count, DType dtype) { return TensorType{{static_cast<int64_t>(count)}, dtype}; };
  if (node.HasAttribute("value_float")) {
    return std::vector<Expr>{MakeConstant(Tensor::Scalar(COLLAGE_TRY(node.Float("value_float", 0)), DType::kFloat32))};
  }
  if (node.HasAttribute("value_int")) {
    return std::vector<Expr>{MakeConstant(Tensor::Scalar(COLLAGE_TRY(node.Int64("value_int", 0)), DType::kInt64))};
  }
  if (node.HasAttribute("value_floats")) {
    const std::vector<float> values = COLLAGE_TRY(node.Floats("value_floats", {}));
    return std::vector<Expr>{MakeConstant(Tensor::FromVector(vector_type(values.size(), DType::kFloat32), values))};
  }
  if (node.HasAttribute("value_ints")) {
    const std::vector<int64_t> values = COLLAGE_TRY(node.Ints("value_ints", {}));
    return std::vector<Expr>{MakeConstant(Tensor::FromVector(vector_type(values.size(), DType::kInt64), values))};
  }
  if (node.HasAttribute("value_string"))
    return std::vector<Expr>{MakeConstant(StringTensor({}, {COLLAGE_TRY(node.String("value_string", ""))}))};
  if (node.HasAttribute("value_strings")) {
    const std::vector<std::string> values = COLLAGE_TRY(node.Strings("value_strings", {}));
    return std::vector<Expr>{MakeConstant(StringTensor({static_cast<int64_t>(values.size())}, values))};
  }
  if (node.HasAttribute("sparse_value")) return std::vector<Expr>{MakeConstant(COLLAGE_TRY(node.TensorAttribute("sparse_value")))};
  return Fail("has no value: value, value_float, value_floats, value_int, value_ints, value_string, value_strings or sparse_value");
}

Result<std::vector<Expr>> ReadConstantOfShape(NodeReader& node) {
  const Shape shape = COLLAGE_TRY(node.IntsInput(0, "shape"));
  COLLAGE_TRY_STATUS(CheckExtents(shape));
  const Tensor value = node.HasAttribute("value") ? COLLAGE_TRY(node.TensorAttribute("value")) : Tensor::Scalar(0.0F, DType::kFloat32);
  if (value.ElementCount() != 1) return Fail("attribute 'value' must have one element");
  const TensorType type{shape, value.dtype()};
  COLLAGE_TRY_STATUS(node.folder().Reserve(static_cast<double>(type.ByteCount())));
  Tensor result(type);
  const size_t size = ByteSize(type.dtype);
  std::byte* target = result.MutableBytes();
  for (int64_t i = 0; i < type.ElementCount(); ++i, target += size) std::memcpy(target, value.Bytes(), size);
  return std::vector<Expr>{MakeConstant(std::move(result))};
}

/// A constant scalar input of Range.
Result<double> RangeInput(const NodeReader& node, size_t index, const char* meaning, DType dtype) {
  const Tensor value = COLLAGE_TRY(node.ConstantInput(index, meaning));
  if (value.ElementCount() != 1 || value.dtype() != dtype) {
    return Fail("input " + std::to_string(index) + " (" + meaning + ") must be a scalar of the type of the others");
  }
  return value.ToDouble()[0];
}

Result<std::vector<Expr>> ReadRange(NodeReader& node) {
  const DType dtype = COLLAGE_TRY(node.InputType(0)).dtype;
  const double start = COLLAGE_TRY(RangeInput(node, 0, "start", dtype));
  const double limit = COLLAGE_TRY(RangeInput(node, 1, "limit", dtype));
  const double delta = COLLAGE_TRY(RangeInput(node, 2, "delta", dtype));
  const double count = std::max(std::ceil((limit - start) / delta), 0.0);
  if (!(count <= 1e9)) return Fail("the range has " + std::to_string(count) + " elements");
  const TensorType type{{static_cast<int64_t>(count)}, dtype};
  COLLAGE_TRY_STATUS(node.folder().Reserve(static_cast<double>(type.ByteCount())));
  if (dtype == DType::kString || dtype == DType::kBool) return Fail("a range of " + std::string(Name(dtype)) + " has no meaning");
  if (IsSixteenBitFloat(dtype)) {
    std::vector<float> values;
    for (int64_t i = 0; i < type.ElementCount(); ++i) values.push_back(static_cast<float>(start + static_cast<double>(i) * delta));
    Tensor narrow(type);
    Narrow(Tensor::FromVector(TensorType{type.shape, DType::kFloat32}, values), narrow);
    return std::vector<Expr>{MakeConstant(std::move(narrow))};
  }
  Tensor result(type);
  VisitElementType(dtype, [&](auto element) {
    using T = decltype(element);
    const std::span<T> numbers(result.MutableData<T>(), static_cast<size_t>(type.ElementCount()));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<T>(start + static_cast<double>(i) * delta);
  });
  return std::vector<Expr>{MakeConstant(std::move(result))};
}

template <int value>
Status WriteFilled(NodeWriter& writer) {
  const TensorType& type = writer.OutputType();
  writer.Emit("ConstantOfShape", {writer.Ints(type.shape)}, {{"value", ScalarOf(value, type.dtype).Reshaped({1})}});
  return {};
}

Status WriteFull(NodeWriter& writer) {
  writer.Emit("Expand", {writer.Input(0), writer.Ints(writer.OutputType().shape)});
  return {};
}

}  // namespace

OperatorFamily ConstantFamily() {
  static constexpr ReadRow kRead[] = {{"Constant", ReadConstant}, {"ConstantOfShape", ReadConstantOfShape}, {"Range", ReadRange}};
  static constexpr WriteRow kWrite[] = {{"zeros", WriteFilled<0>},
                                        {"zeros_like", WriteFilled<0>},
                                        {"ones", WriteFilled<1>},
                                        {"ones_like", WriteFilled<1>},
                                        {"full", WriteFull}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
