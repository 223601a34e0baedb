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
Result<Tensor> RangeInput(const NodeReader& node, size_t index, const char* meaning, DType dtype) {
  Tensor value = COLLAGE_TRY(node.ConstantInput(index, meaning));
  if (value.ElementCount() != 1 || value.dtype() != dtype) {
    return Fail("input " + std::to_string(index) + " (" + meaning + ") must be a scalar of the type of the others");
  }
  return value;
}

struct IntegerRange {
  int64_t start;
  int64_t delta;
  uint64_t count;
  [[nodiscard]] int64_t At(size_t i) const { return static_cast<int64_t>(static_cast<uint64_t>(start) + i * static_cast<uint64_t>(delta)); }
};

/// Exact, where a double has too few digits: nanoseconds since 1970, say.
Result<IntegerRange> RangeOfIntegers(int64_t start, int64_t limit, int64_t delta) {
  if (delta == 0) return Fail("input 2 (delta) is 0");
  const bool is_rising = delta > 0;
  if (is_rising ? limit <= start : start <= limit) return IntegerRange{start, delta, 0};
  const auto first = static_cast<uint64_t>(start);
  const auto last = static_cast<uint64_t>(limit);
  const uint64_t step = is_rising ? static_cast<uint64_t>(delta) : uint64_t{0} - static_cast<uint64_t>(delta);
  const uint64_t distance = is_rising ? last - first : first - last;
  return IntegerRange{start, delta, distance / step + (distance % step != 0 ? 1 : 0)};
}

/// Of the numbers value(0), value(1), ...
template <class Value>
Result<std::vector<Expr>> Counted(NodeReader& node, DType dtype, double count, const Value& value) {
  if (!(count <= 1e9)) return Fail("the range has " + std::to_string(count) + " elements");
  const Shape shape{static_cast<int64_t>(count)};
  COLLAGE_TRY_STATUS(node.folder().Reserve(static_cast<double>(TensorType{shape, dtype}.ByteCount())));
  Tensor wide(TensorType{shape, WideType(dtype)});
  VisitElementType(wide.dtype(), [&](auto element) {
    using T = decltype(element);
    const std::span<T> numbers(wide.MutableData<T>(), static_cast<size_t>(shape[0]));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<T>(value(i));
  });
  if (!IsNarrow(dtype)) return std::vector<Expr>{MakeConstant(std::move(wide))};
  Tensor narrow(TensorType{shape, dtype});
  Narrow(wide, narrow);
  return std::vector<Expr>{MakeConstant(std::move(narrow))};
}

Result<std::vector<Expr>> ReadRange(NodeReader& node) {
  const DType dtype = COLLAGE_TRY(node.InputType(0)).dtype;
  if (dtype == DType::kString || dtype == DType::kBool) return Fail("a range of " + std::string(Name(dtype)) + " has no meaning");
  const Tensor start = COLLAGE_TRY(RangeInput(node, 0, "start", dtype));
  const Tensor limit = COLLAGE_TRY(RangeInput(node, 1, "limit", dtype));
  const Tensor delta = COLLAGE_TRY(RangeInput(node, 2, "delta", dtype));
  if (!IsFloatingPoint(dtype)) {
    const IntegerRange range = COLLAGE_TRY(RangeOfIntegers(start.ToInt64().front(), limit.ToInt64().front(), delta.ToInt64().front()));
    return Counted(node, dtype, static_cast<double>(range.count), [range](size_t i) { return range.At(i); });
  }
  const double first = start.ToDouble().front();
  const double step = delta.ToDouble().front();
  const double count = std::max(std::ceil((limit.ToDouble().front() - first) / step), 0.0);
  return Counted(node, dtype, count, [first, step](size_t i) { return first + static_cast<double>(i) * step; });
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
