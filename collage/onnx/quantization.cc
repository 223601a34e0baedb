#include "collage/onnx/quantization.h"

#include <algorithm>
#include <functional>

#include "collage/onnx/convolution.h"
#include "collage/onnx/data_type.h"
#include "collage/onnx/node_writer.h"
#include "collage/onnx/rows.h"
#include "collage/onnx/writer.h"
#include "collage/support/check.h"
#include "collage/tensor/narrow.h"

namespace collage::onnx_io {
Expr SpreadBlocks(Formula& formula, const Expr& values, const Shape& data, int64_t axis, int64_t block) {
  if (values == nullptr) return values;
  const auto at = static_cast<size_t>(axis);
  Shape shape = Formula::ShapeOf(values);
  COLLAGE_CHECK(shape.size() == data.size(), "readers check shapes");
  Shape column = shape;
  column.insert(column.begin() + axis + 1, 1);
  Shape repeated = column;
  repeated[at + 1] = block;
  shape[at] *= block;
  const Expr spread = formula.Reshape(formula.Broadcast(formula.Reshape(values, column), repeated), shape);
  return shape[at] == data[at] ? spread : formula.Slice(spread, axis, 0, data[at]);
}

namespace {

/// Scales and zero points, and how they lie on the data: one for all, one a place of an axis, or one a block of an axis.
struct QuantizationParameters {
  Expr scale;
  Expr zero_point;  ///< null: 0
  int64_t axis = 0;
  bool blocked = false;
};

Result<QuantizationParameters> ReadParameters(NodeReader& node, const TensorType& data) {
  QuantizationParameters parameters{COLLAGE_TRY(node.Input(1)), node.HasInput(2) ? COLLAGE_TRY(node.Input(2)) : nullptr, 0, false};
  const TensorType type = COLLAGE_TRY(TensorTypeOf(parameters.scale));
  Formula formula(node, type.dtype);
  const int64_t block = COLLAGE_TRY(node.Int("block_size", 0));
  if (type.ElementCount() == 1 && block == 0) {
    parameters.scale = formula.Reshape(parameters.scale, {});
    if (parameters.zero_point != nullptr) parameters.zero_point = formula.Reshape(parameters.zero_point, {});
    COLLAGE_TRY(formula.Done(parameters.scale));
    return parameters;
  }
  parameters.axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(node.Int("axis", 1)), data.shape.size()));
  parameters.blocked = block > 0;
  if (!parameters.blocked) return parameters;
  const auto at = static_cast<size_t>(parameters.axis);
  if (block > data.shape[at] + 1) {
    return Fail("attribute 'block_size' is " + std::to_string(block) + " along dimension " + std::to_string(at) + " of data of shape " +
                ToString(data.shape));
  }
  Shape expected = data.shape;
  expected[at] = (data.shape[at] + block - 1) / block;
  for (const auto& [values, name] : {std::pair(&parameters.scale, "1 (scale)"), std::pair(&parameters.zero_point, "2 (zero point)")}) {
    if (*values == nullptr) continue;
    const Shape& shape = COLLAGE_TRY(TensorTypeOf(*values)).shape;
    if (shape != expected)
      return Fail("input " + std::string(name) + " has shape " + ToString(shape) + "; blocks of " + std::to_string(block) + " need " +
                  ToString(expected));
  }
  parameters.scale = SpreadBlocks(formula, parameters.scale, data.shape, parameters.axis, block);
  parameters.zero_point = SpreadBlocks(formula, parameters.zero_point, data.shape, parameters.axis, block);
  COLLAGE_TRY(formula.Done(parameters.scale));
  return parameters;
}

bool IsQuantizedInteger(DType dtype) {
  return dtype == DType::kInt8 || dtype == DType::kUInt8 || dtype == DType::kInt16 || dtype == DType::kUInt16 || dtype == DType::kInt32;
}

/// Zeros of the shape of the scales.
Expr ZeroPoint(Formula& formula, const QuantizationParameters& parameters, DType dtype) {
  if (parameters.zero_point != nullptr) return parameters.zero_point;
  return formula.Zeros(Formula::ShapeOf(parameters.scale), dtype);
}

/// Vectors of scales as they broadcast over the data.
Expr Aligned(Formula& formula, const Expr& values, const QuantizationParameters& parameters, size_t rank) {
  Shape shape = Formula::ShapeOf(values);
  if (parameters.blocked || shape.size() != 1) return values;
  shape.resize(rank - static_cast<size_t>(parameters.axis), 1);
  return formula.Reshape(values, shape);
}

Result<DType> QuantizedType(const NodeReader& node, const QuantizationParameters& parameters) {
  if (parameters.zero_point != nullptr) return COLLAGE_TRY(TensorTypeOf(parameters.zero_point)).dtype;
  const int64_t number = COLLAGE_TRY(node.Int("output_dtype", 0));
  if (number == 0) return DType::kUInt8;
  const std::optional<DType> dtype = DTypeOfOnnx(number);
  if (!dtype) return Fail("attribute 'output_dtype' is the data type " + std::to_string(number) + ", which is not supported");
  return *dtype;
}

/// round(data / scale) + zero point, saturated.
Result<std::vector<Expr>> ReadQuantizeLinear(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const QuantizationParameters parameters = COLLAGE_TRY(ReadParameters(node, type));
  const DType dtype = COLLAGE_TRY(QuantizedType(node, parameters));
  Formula formula(node, DType::kFloat32);
  const Expr wide = formula.Cast(data, DType::kFloat32);
  if (IsQuantizedInteger(dtype) && !parameters.blocked) {
    const Expr scale = formula.Cast(parameters.scale, DType::kFloat32);
    return formula.Done(formula.Apply("qnn.quantize", {wide, scale, ZeroPoint(formula, parameters, dtype)}, {{"axis", parameters.axis}}));
  }
  const Expr scale = formula.Cast(Aligned(formula, parameters.scale, parameters, type.shape.size()), DType::kFloat32);
  Expr quotient = formula.Call("divide", wide, scale);
  if (!IsFloatingPoint(dtype)) quotient = formula.Call("round", quotient);
  if (parameters.zero_point != nullptr) {
    const Expr zero = Aligned(formula, formula.Cast(parameters.zero_point, DType::kFloat32), parameters, type.shape.size());
    quotient = formula.Call("add", quotient, zero);
  }
  if (!IsFloatingPoint(dtype)) {
    const IntegerLimits limits = LimitsOfInteger(dtype);
    quotient = formula.Clip(quotient, static_cast<double>(limits.low), static_cast<double>(limits.high));
  }
  const bool saturates = COLLAGE_TRY(node.Int("saturate", 1)) != 0;
  return formula.Done(saturates || !IsFloatingPoint(dtype)
                          ? formula.Cast(quotient, dtype)
                          : formula.Apply("cast", {quotient}, {{"dtype", std::string(Name(dtype))}, {"saturate", false}}));
}

/// (data - zero point) * scale, of the type of the scale.
Result<std::vector<Expr>> ReadDequantizeLinear(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const QuantizationParameters parameters = COLLAGE_TRY(ReadParameters(node, type));
  const DType result_type = COLLAGE_TRY(TensorTypeOf(parameters.scale)).dtype;
  Formula formula(node, DType::kFloat32);
  if (IsQuantizedInteger(type.dtype) && !parameters.blocked) {
    return formula.Done(
        formula.Apply("qnn.dequantize", {data, parameters.scale, ZeroPoint(formula, parameters, type.dtype)}, {{"axis", parameters.axis}}));
  }
  Expr wide = formula.Cast(data, DType::kFloat32);
  if (parameters.zero_point != nullptr) {
    const Expr zero = Aligned(formula, formula.Cast(parameters.zero_point, DType::kFloat32), parameters, type.shape.size());
    wide = formula.Call("subtract", wide, zero);
  }
  const Expr scale = formula.Cast(Aligned(formula, parameters.scale, parameters, type.shape.size()), DType::kFloat32);
  return formula.Done(formula.Cast(formula.Call("multiply", wide, scale), result_type));
}

/// uint8 over the range of the data and 0.
Result<std::vector<Expr>> ReadDynamicQuantizeLinear(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  Formula formula(node, type.dtype);
  // Of nothing there is no greatest element. Runtimes take the scale 1 here.
  if (ElementCount(type.shape) == 0)
    return formula.DoneAll({formula.Zeros(type.shape, DType::kUInt8), formula.Number(1), formula.Zeros({}, DType::kUInt8)});
  const Expr high = formula.Call("maximum", formula.Apply("max", {data}), 0.0);
  const Expr low = formula.Call("minimum", formula.Apply("min", {data}), 0.0);
  const Expr scale = formula.Call("divide", formula.Call("subtract", high, low), 255.0);
  const Expr quotient = formula.Call("divide", formula.Call("negative", low), scale);
  const Expr zero_point = formula.Cast(formula.Call("round", formula.Clip(quotient, 0, 255)), DType::kUInt8);
  return formula.DoneAll({formula.Apply("qnn.quantize", {data, scale, zero_point}), scale, zero_point});
}

/// The int32 of a quantized operand less its zero point, which lies along dimension `axis` where it is a vector.
Result<Expr> Centred(NodeReader& node, Formula& integers, size_t input, size_t zero_point, int64_t axis) {
  const Expr wide = integers.Cast(COLLAGE_TRY(node.Input(input)), DType::kInt32);
  if (!node.HasInput(zero_point)) return wide;
  const Shape data = COLLAGE_TRY(node.InputType(input)).shape;
  Expr zero = integers.Cast(COLLAGE_TRY(node.Input(zero_point)), DType::kInt32);
  Shape shape = Formula::ShapeOf(zero);
  if (ElementCount(shape) == 1) {
    zero = integers.Reshape(zero, {});
  } else if (shape.size() == 1) {
    const int64_t place = COLLAGE_TRY(NormalizeAxis(axis, data.size()));
    shape.resize(data.size() - static_cast<size_t>(place), 1);
    zero = integers.Reshape(zero, shape);
  }
  return integers.Call("subtract", wide, zero);
}

/// Products of data with `weight`: linear in the data, and the same for each place of its batch.
using Product = std::function<Result<Expr>(const Expr& data)>;

/// Products of input 0 less its zero point. Libraries take integers less a constant only. So where the zero point is computed, and the
/// weights are known, it is taken off behind: what a product makes of it is as many times what it makes of ones.
Result<Expr> CentredProduct(NodeReader& node, Formula& integers, size_t zero_point, int64_t axis, const Expr& weight,
                            const Product& product) {
  const Expr zero = node.HasInput(zero_point) ? COLLAGE_TRY(node.Input(zero_point)) : nullptr;
  const bool is_behind = zero != nullptr && ConstantValue(zero) == nullptr && ConstantValue(weight) != nullptr &&
                         COLLAGE_TRY(TensorTypeOf(zero)).ElementCount() == 1;
  if (!is_behind) return product(COLLAGE_TRY(Centred(node, integers, 0, zero_point, axis)));
  const Expr sums = COLLAGE_TRY(product(integers.Cast(COLLAGE_TRY(node.Input(0)), DType::kInt32)));
  Shape one = COLLAGE_TRY(node.InputType(0)).shape;
  // The batch of a convolution, whose channels lie along 1, or all rows of a product of matrices.
  const size_t alike = axis == 1 ? 1 : one.size() - 1;
  std::fill(one.begin(), one.begin() + static_cast<ptrdiff_t>(alike), 1);
  const Expr of_ones = COLLAGE_TRY(product(integers.Broadcast(integers.Number(1), one)));
  const Expr scalar = integers.Reshape(integers.Cast(zero, DType::kInt32), {});
  return integers.Call("subtract", sums, integers.Call("multiply", of_ones, scalar));
}

Result<Expr> IntegerProduct(NodeReader& node, Formula& integers, size_t b, size_t a_zero_point, size_t b_zero_point) {
  const Expr right = COLLAGE_TRY(Centred(node, integers, b, b_zero_point, -1));
  COLLAGE_TRY(integers.Done(right));
  return CentredProduct(node, integers, a_zero_point, -2, right, [&](const Expr& data) -> Result<Expr> {
    return integers.Apply("nn.matmul", {data, right});
  });
}

Result<std::vector<Expr>> ReadMatMulInteger(NodeReader& node) {
  Formula integers(node, DType::kInt32);
  const Expr product = COLLAGE_TRY(IntegerProduct(node, integers, 1, 2, 3));
  return integers.Done(product);
}

/// int32 sums times the scales of both operands, quantized again by the scale and zero point at inputs `first` and first + 1.
Result<std::vector<Expr>> Requantized(NodeReader& node, const Expr& sums, const Expr& scale, int64_t axis, size_t first = 6) {
  Formula formula(node, DType::kFloat32);
  const Expr real = formula.Call("multiply", formula.Cast(sums, DType::kFloat32), scale);
  const Expr y_scale = formula.Reshape(formula.Cast(COLLAGE_TRY(node.Input(first)), DType::kFloat32), {});
  const Expr zero_point = formula.Reshape(COLLAGE_TRY(node.Input(first + 1)), {});
  return formula.Done(formula.Apply("qnn.quantize", {real, y_scale, zero_point}, {{"axis", axis}}));
}

/// com.microsoft: alpha A' B' + C, C in int32 at the scale of the products; without a scale of the result it stays floating point.
Result<std::vector<Expr>> ReadQGemm(NodeReader& node) {
  const bool transpose_a = COLLAGE_TRY(node.Int("transA", 0)) != 0;
  const bool transpose_b = COLLAGE_TRY(node.Int("transB", 0)) != 0;
  Formula integers(node, DType::kInt32);
  const Expr a = COLLAGE_TRY(Centred(node, integers, 0, 2, transpose_a ? 1 : 0));
  const Expr b = COLLAGE_TRY(Centred(node, integers, 3, 5, transpose_b ? 0 : 1));
  Expr sums = integers.Apply("nn.matmul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
  if (node.HasInput(6)) sums = integers.Call("add", sums, COLLAGE_TRY(node.Input(6)));
  COLLAGE_TRY(integers.Done(sums));
  Formula formula(node, DType::kFloat32);
  const double alpha = COLLAGE_TRY(node.Float("alpha", 1));
  Expr scale = formula.Call("multiply", COLLAGE_TRY(node.Input(1)), COLLAGE_TRY(node.Input(4)));
  if (alpha != 1) scale = formula.Call("multiply", scale, alpha);
  COLLAGE_TRY(formula.Done(scale));
  if (node.HasInput(7)) return Requantized(node, sums, scale, -1, 7);
  return formula.Done(formula.Call("multiply", formula.Cast(sums, DType::kFloat32), scale));
}

Result<std::vector<Expr>> ReadQLinearMatMul(NodeReader& node) {
  Formula integers(node, DType::kInt32);
  const Expr sums = COLLAGE_TRY(IntegerProduct(node, integers, 3, 2, 5));
  COLLAGE_TRY(integers.Done(sums));
  Formula formula(node, DType::kFloat32);
  Expr a_scale = formula.Cast(COLLAGE_TRY(node.Input(1)), DType::kFloat32);
  const Shape rows = Formula::ShapeOf(a_scale);
  if (rows.size() == 1 && rows[0] > 1) a_scale = formula.Reshape(a_scale, {rows[0], 1});
  const Expr scale = formula.Call("multiply", a_scale, formula.Cast(COLLAGE_TRY(node.Input(4)), DType::kFloat32));
  COLLAGE_TRY(formula.Done(scale));
  return Requantized(node, sums, scale, -1);
}

Result<std::vector<Expr>> ReadConvInteger(NodeReader& node) {
  Formula integers(node, DType::kInt32);
  const Expr weight = COLLAGE_TRY(Centred(node, integers, 1, 3, 0));
  COLLAGE_TRY(integers.Done(weight));
  const Expr result = COLLAGE_TRY(CentredProduct(node, integers, 2, 1, weight, [&](const Expr& data) -> Result<Expr> {
    COLLAGE_TRY(integers.Done(data));
    return Convolve(node, data, weight, nullptr);
  }));
  return integers.Done(result);
}

Result<std::vector<Expr>> ReadQLinearConv(NodeReader& node) {
  Formula integers(node, DType::kInt32);
  const Expr data = COLLAGE_TRY(Centred(node, integers, 0, 2, 1));
  const Expr weight = COLLAGE_TRY(Centred(node, integers, 3, 5, 0));
  COLLAGE_TRY(integers.DoneAll({data, weight}));
  const Expr bias = node.HasInput(8) ? COLLAGE_TRY(node.Input(8)) : nullptr;
  const Expr sums = COLLAGE_TRY(Convolve(node, data, weight, bias));
  Formula formula(node, DType::kFloat32);
  Expr w_scale = COLLAGE_TRY(node.Input(4));
  const int64_t count = COLLAGE_TRY(TensorTypeOf(w_scale)).ElementCount();
  Shape of_channels(Formula::ShapeOf(sums).size() - 1, 1);
  const Expr x_scale = formula.Reshape(COLLAGE_TRY(node.Input(1)), of_channels);
  of_channels[0] = count;
  const Expr scale = formula.Call("multiply", x_scale, formula.Reshape(w_scale, of_channels));
  COLLAGE_TRY(formula.Done(scale));
  return Requantized(node, sums, scale, 1);
}

template <bool quantize>
Status WriteQuantization(NodeWriter& writer) {
  const DType dtype = (quantize ? writer.OutputType() : writer.InputType(0)).dtype;
  const bool has_form = dtype == DType::kInt8 || dtype == DType::kUInt8 || (dtype == DType::kInt32 && !quantize);
  if (!has_form || writer.InputType(1).dtype != DType::kFloat32) {
    return Fail("of " + std::string(Name(dtype)) + " with a scale of " + std::string(Name(writer.InputType(1).dtype)) +
                " has no form in opset " + std::to_string(kWrittenOpset));
  }
  OnnxAttributes attributes;
  if (!writer.InputType(1).shape.empty()) attributes.emplace_back("axis", COLLAGE_TRY(writer.attributes().Int("axis", -1)));
  writer.Emit(quantize ? "QuantizeLinear" : "DequantizeLinear", writer.Inputs(), attributes);
  return {};
}

}  // namespace

OperatorFamily QuantizationFamily() {
  static constexpr ReadRow kRead[] = {{"QuantizeLinear", ReadQuantizeLinear},
                                      {"DequantizeLinear", ReadDequantizeLinear},
                                      {"DynamicQuantizeLinear", ReadDynamicQuantizeLinear},
                                      {"MatMulInteger", ReadMatMulInteger},
                                      {"QLinearMatMul", ReadQLinearMatMul},
                                      {"ConvInteger", ReadConvInteger},
                                      {"QLinearConv", ReadQLinearConv},
                                      {"com.microsoft.QGemm", ReadQGemm}};
  static constexpr WriteRow kWrite[] = {{"qnn.quantize", WriteQuantization<true>}, {"qnn.dequantize", WriteQuantization<false>}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
