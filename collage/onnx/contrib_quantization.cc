#include <algorithm>
#include <numeric>

#include "collage/onnx/direct.h"
#include "collage/onnx/node_writer.h"
#include "collage/onnx/packed_bits.h"
#include "collage/onnx/quantization.h"
#include "collage/onnx/rows.h"
#include "collage/op/nbits_product.h"

// The quantized operators of com.microsoft, most of them as compositions of others.

namespace collage::onnx_io {
namespace {

/// Input 0 times the transpose of weights that are known as numbers.
Result<Expr> ReadProduct(NodeReader& node, Formula& formula, const Expr& weights) {
  const Expr matrix = formula.Transpose(weights, {1, 0});
  COLLAGE_TRY(formula.Done(matrix));
  return COLLAGE_TRY(node.ReadAs("MatMul", {COLLAGE_TRY(node.Input(0)), matrix}))[0];
}

/// The weights of MatMulNBits, (N, K), as numbers: (weight - zero point) * scale. Zero points are packed, or numbers themselves.
Result<Expr> NumbersOf(NodeReader& node, Formula& formula, const NBitsProduct& product, const Expr& packed, const Expr& scales,
                       Expr zeros) {
  const Shape shape = {product.columns, product.depth};
  if (COLLAGE_TRY(TensorTypeOf(zeros)).dtype == DType::kUInt8)
    zeros = COLLAGE_TRY(Unpacked(node, formula, zeros, product.bits, {product.columns, product.blocks}));
  const Expr bytes = COLLAGE_TRY(node.Reshape(packed, {product.columns, ElementCount(Formula::ShapeOf(packed)) / product.columns}));
  const Expr weights = COLLAGE_TRY(Unpacked(node, formula, bytes, product.bits, shape));
  Expr groups;
  if (node.HasInput(4)) {
    groups = COLLAGE_TRY(node.Input(4));
    const TensorType type = COLLAGE_TRY(TensorTypeOf(groups));
    const bool fits = type.shape == Shape{product.depth} || type.shape == Shape{product.blocks * product.block};
    if (!fits || type.dtype != DType::kInt32)
      return Fail("input 4 (g_idx) is " + ToString(type) + ", expected int32, one for each of " + std::to_string(product.depth) + " ('K')");
    groups = formula.Slice(groups, 0, 0, product.depth);
  }
  const auto spread = [&](const Expr& values) {
    if (groups == nullptr) return SpreadBlocks(formula, values, shape, 1, product.block);
    return formula.Apply("take", {values, groups}, {{"axis", 1}});
  };
  const Expr numbers = formula.Call("multiply", formula.Call("subtract", weights, spread(zeros)), spread(scales));
  return COLLAGE_TRY(formula.Done(numbers))[0];
}

/// B is quantized in blocks along its columns: (N, blocks, bytes of a block), 2, 4 (low ones first) or 8 bits an element.
Result<std::vector<Expr>> ReadMatMulNBits(NodeReader& node) {
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  NBitsProduct product;
  product.depth = COLLAGE_TRY(node.Int("K", 0));
  product.columns = COLLAGE_TRY(node.Int("N", 0));
  product.bits = COLLAGE_TRY(node.Int("bits", 4));
  product.block = COLLAGE_TRY(node.Int("block_size", 0));
  COLLAGE_TRY_STATUS(CheckExtents({product.columns, product.depth}));
  COLLAGE_TRY_STATUS(CheckExtents({product.block}));
  const bool is_packable = product.bits == 2 || product.bits == 4 || product.bits == 8;
  if (!is_packable || product.block < 2 || product.block * product.bits % 8 != 0 || product.depth < 1 || product.columns < 1) {
    return Fail("has " + std::to_string(product.bits) + " bits in blocks of " + std::to_string(product.block) +
                "; 2, 4 or 8 bits are supported, in blocks that fill whole bytes");
  }
  if (type.shape.empty() || type.shape.back() != product.depth)
    return Fail("input 0 has shape " + ToString(type.shape) + ", expected " + std::to_string(product.depth) +
                " ('K') as its last dimension");
  product.blocks = (product.depth + product.block - 1) / product.block;
  Formula formula(node, type.dtype);
  const Shape packed = {product.columns, product.blocks, product.block * product.bits / 8};
  const Expr weights = COLLAGE_TRY(node.Reshape(COLLAGE_TRY(node.Input(1)), packed));
  const Expr scales = COLLAGE_TRY(node.Reshape(COLLAGE_TRY(node.Input(2)), {product.columns, product.blocks}));
  Expr zeros = node.HasInput(3) ? COLLAGE_TRY(node.Input(3)) : MakeConstant(product.DefaultZeros());
  const DType zero_type = COLLAGE_TRY(TensorTypeOf(zeros)).dtype;
  if (zero_type != DType::kUInt8 && zero_type != type.dtype)
    return Fail("input 3 (zero_points) is " + std::string(Name(zero_type)) + ", expected uint8 or " + std::string(Name(type.dtype)));
  const bool is_packed = zero_type == DType::kUInt8;
  zeros = COLLAGE_TRY(node.Reshape(zeros, {product.columns, is_packed ? product.ZeroBytes() : product.blocks}));
  Expr result;
  if (is_packed && !node.HasInput(4)) {
    result = formula.Apply("nn.matmul_nbits", {COLLAGE_TRY(node.Input(0)), weights, scales, zeros},
                           {{"bits", product.bits}, {"block_size", product.block}});
  } else {
    // The operator has neither zero points that are no integers nor groups of elements that do not lie side by side.
    result = COLLAGE_TRY(ReadProduct(node, formula, COLLAGE_TRY(NumbersOf(node, formula, product, weights, scales, zeros))));
  }
  if (node.HasInput(5)) result = formula.Call("add", result, COLLAGE_TRY(node.Input(5)));
  return formula.Done(result);
}

Status WriteMatMulNBits(NodeWriter& writer) {
  std::vector<TensorType> types;
  for (size_t i = 0; i < writer.input_count(); ++i) types.push_back(writer.InputType(i));
  const NBitsProduct product = COLLAGE_TRY(ReadNBitsProduct(types, writer.attributes()));
  std::vector<std::string> inputs = {writer.Input(0), writer.Input(1), writer.Input(2)};
  const Tensor* zeros = writer.InputConstant(3);
  // Libraries are faster where they are not said.
  if (zeros == nullptr || !product.HasDefaultZeros(*zeros)) inputs.push_back(writer.Input(3));
  writer.Emit("com.microsoft.MatMulNBits", inputs,
              {{"K", product.depth}, {"N", product.columns}, {"bits", product.bits}, {"block_size", product.block}});
  return {};
}

/// B is quantized as bitsandbytes does it: numbers of 4 bits are places in a table of 16 values, all of [-1, 1]. Elements of the matrix (N,
/// K) follow one another, whatever its rows, and blocks of them share a scale, their largest magnitude.
Result<std::vector<Expr>> ReadMatMulBnb4(NodeReader& node) {
  // QLoRA (Dettmers et al., 2023), appendix E: quantiles of the normal distribution.
  static const std::vector<float> kNormalFloat = {-1.0F,
                                                  -0.6961928009986877F,
                                                  -0.5250730514526367F,
                                                  -0.39491748809814453F,
                                                  -0.28444138169288635F,
                                                  -0.18477343022823334F,
                                                  -0.09105003625154495F,
                                                  0.0F,
                                                  0.07958029955625534F,
                                                  0.16093020141124725F,
                                                  0.24611230194568634F,
                                                  0.33791524171829224F,
                                                  0.44070982933044434F,
                                                  0.5626170039176941F,
                                                  0.7229568362236023F,
                                                  1.0F};
  // A sign, two bits of exponent and one of mantissa, over the largest of them, 12; the least but 0 is 1/16.
  static const std::vector<float> kFloat = {0.0F,  0.0625F / 12,  8.0F / 12,  1.0F,  4.0F / 12,  6.0F / 12,  2.0F / 12,  3.0F / 12,
                                            -0.0F, -0.0625F / 12, -8.0F / 12, -1.0F, -4.0F / 12, -6.0F / 12, -2.0F / 12, -3.0F / 12};
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  const int64_t depth = COLLAGE_TRY(node.Int("K", 0));
  const int64_t columns = COLLAGE_TRY(node.Int("N", 0));
  const int64_t block = COLLAGE_TRY(node.Int("block_size", 0));
  const int64_t kind = COLLAGE_TRY(node.Int("quant_type", 1));
  if (depth < 1 || columns < 1 || block < 1 || (kind != 0 && kind != 1)) {
    return Fail("has K " + std::to_string(depth) + ", N " + std::to_string(columns) + ", block_size " + std::to_string(block) +
                " and quant_type " + std::to_string(kind) + "; positive ones and the types 0 (FP4) and 1 (NF4) are supported");
  }
  COLLAGE_TRY_STATUS(CheckExtents({columns, depth}));
  COLLAGE_TRY_STATUS(CheckExtents({block}));
  const int64_t elements = columns * depth;
  Formula formula(node, type.dtype);
  Formula integers(node, DType::kInt32);
  const Expr bytes = COLLAGE_TRY(node.Reshape(COLLAGE_TRY(node.Input(1)), {1, (elements + 1) / 2}));
  const Expr scales = COLLAGE_TRY(node.Reshape(COLLAGE_TRY(node.Input(2)), {(elements + block - 1) / block}));
  const Expr places = integers.Reshape(COLLAGE_TRY(Unpacked(node, integers, bytes, 4, {1, elements}, First::kHigh)), {elements});
  const Tensor table = Tensor::FromVector(TensorType{{16}, DType::kFloat32}, kind == 0 ? kFloat : kNormalFloat);
  const Expr values = formula.Apply("take", {formula.Cast(MakeConstant(table), type.dtype), places}, {{"axis", 0}});
  const Expr weights = formula.Call("multiply", values, SpreadBlocks(formula, scales, {elements}, 0, block));
  return formula.Done(COLLAGE_TRY(ReadProduct(node, formula, formula.Reshape(weights, {columns, depth}))));
}

/// Rows of a table that is quantized in blocks along its last dimension; of uint8 with 4 bits, a byte holds two elements.
Result<std::vector<Expr>> ReadGatherBlockQuantized(NodeReader& node) {
  const TensorType table = COLLAGE_TRY(node.InputType(0));
  const TensorType scales = COLLAGE_TRY(node.InputType(2));
  const int64_t bits = COLLAGE_TRY(node.Int("bits", 4));
  const int64_t block = COLLAGE_TRY(node.Int("block_size", 128));
  const bool packed = table.dtype == DType::kUInt8 && bits == 4;
  COLLAGE_TRY_STATUS(node.RequireInt("gather_axis", 0, 0));
  if (table.shape.size() != 2 || scales.shape.size() != 2 || (bits != 4 && bits != 8) || block < 1) {
    return Fail("a table " + ToString(table.shape) + " with scales " + ToString(scales.shape) + " and " + std::to_string(bits) +
                " bits is not supported; two dimensions and 4 or 8 bits are");
  }
  COLLAGE_TRY_STATUS(node.RequireInt("quantize_axis", 1, 1));
  const int64_t width = table.shape[1] * (packed ? 2 : 1);
  const int64_t blocks = scales.shape[1];
  if (width % block != 0 || blocks != width / block) {
    return Fail("scales " + ToString(scales.shape) + " do not fit rows of " + std::to_string(width) + " elements in whole blocks of " +
                std::to_string(block));
  }
  const Expr indices = COLLAGE_TRY(node.Input(1));
  Shape shape = COLLAGE_TRY(TensorTypeOf(indices)).shape;
  const int64_t rows = ElementCount(shape);
  Formula formula(node, scales.dtype);
  const Expr flat = formula.Reshape(indices, {rows});
  const auto chosen = [&](size_t input) -> Result<Expr> {
    return formula.Apply("take", {COLLAGE_TRY(node.Input(input)), flat}, {{"axis", 0}, {"mode", "wrap"}});
  };
  const auto unpacked = [&](size_t input, const Shape& to) -> Result<Expr> {
    const Expr bytes = COLLAGE_TRY(chosen(input));
    COLLAGE_TRY(formula.Done(bytes));
    if (Formula::ShapeOf(bytes).size() != 2) return Fail("input " + std::to_string(input) + " must have two dimensions");
    return Unpacked(node, formula, bytes, packed ? 4 : 8, to);
  };
  const Expr values = COLLAGE_TRY(unpacked(0, {rows, blocks, block}));
  Expr zero = formula.Number(table.dtype == DType::kUInt8 ? (bits == 4 ? 8 : 128) : 0);
  if (node.HasInput(3)) zero = COLLAGE_TRY(unpacked(3, {rows, blocks, 1}));
  const Expr scale = formula.Reshape(COLLAGE_TRY(chosen(2)), {rows, blocks, 1});
  shape.push_back(width);
  return formula.Done(formula.Reshape(formula.Call("multiply", formula.Call("subtract", values, zero), scale), shape));
}

/// Operators on quantized tensors as ONNX Runtime's optimiser makes them: (data, scale, zero point) for each operand, then the
/// scale and zero point of the result.
Result<Expr> Dequantized(NodeReader& node, Formula& formula, size_t first) {
  const Expr scale = formula.Reshape(COLLAGE_TRY(node.Input(first + 1)), {});
  const Expr data = COLLAGE_TRY(node.Input(first));
  const Expr zero = node.HasInput(first + 2) ? formula.Reshape(COLLAGE_TRY(node.Input(first + 2)), {})
                                             : formula.Zeros({}, COLLAGE_TRY(TensorTypeOf(data)).dtype);
  return formula.Apply("qnn.dequantize", {data, scale, zero});
}

Result<std::vector<Expr>> Quantized(NodeReader& node, Formula& formula, const Expr& real, size_t first, DType dtype) {
  const Expr scale = formula.Reshape(COLLAGE_TRY(node.Input(first)), {});
  const Expr zero = node.HasInput(first + 1) ? formula.Reshape(COLLAGE_TRY(node.Input(first + 1)), {}) : formula.Zeros({}, dtype);
  return formula.Done(formula.Apply("qnn.quantize", {real, scale, zero}));
}

template <bool multiply>
Result<std::vector<Expr>> ReadQLinearBinary(NodeReader& node) {
  Formula formula(node, DType::kFloat32);
  const Expr a = COLLAGE_TRY(Dequantized(node, formula, 0));
  const Expr b = COLLAGE_TRY(Dequantized(node, formula, 3));
  return Quantized(node, formula, formula.Call(multiply ? "multiply" : "add", a, b), 6, COLLAGE_TRY(node.InputType(0)).dtype);
}

template <bool leaky>
Result<std::vector<Expr>> ReadQLinearUnary(NodeReader& node) {
  Formula formula(node, DType::kFloat32);
  const Expr data = COLLAGE_TRY(Dequantized(node, formula, 0));
  const double alpha = COLLAGE_TRY(node.Float("alpha", 0.01F));
  const Expr result = leaky ? formula.Apply("nn.leaky_relu", {data}, {{"alpha", alpha}}) : formula.Call("sigmoid", data);
  return Quantized(node, formula, result, 3, COLLAGE_TRY(node.InputType(0)).dtype);
}

/// An image between channels first, as operators want it, and last.
Expr MoveChannels(Formula& formula, const Expr& image, bool to_front) {
  const auto rank = static_cast<int64_t>(Formula::ShapeOf(image).size());
  if (rank < 3) return formula.Refuse("an image with channels last must have three dimensions at least");
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (to_front) {
    std::rotate(axes.begin() + 1, axes.end() - 1, axes.end());
  } else {
    std::rotate(axes.begin() + 1, axes.begin() + 2, axes.end());
  }
  return formula.Transpose(image, axes);
}

/// As the operator of ONNX; the optimiser of ONNX Runtime puts the channels last.
Result<std::vector<Expr>> ReadQLinearConvOfMicrosoft(NodeReader& node) {
  const bool is_last = COLLAGE_TRY(node.Int("channels_last", 0)) != 0;
  std::vector<Expr> inputs = COLLAGE_TRY(AllInputs(node));
  Formula formula(node, DType::kFloat32);
  if (is_last && !inputs.empty()) inputs[0] = MoveChannels(formula, inputs[0], true);
  COLLAGE_TRY(formula.DoneAll(inputs));
  const Expr result = COLLAGE_TRY(node.ReadAs("QLinearConv", std::move(inputs)))[0];
  return formula.Done(is_last ? MoveChannels(formula, result, false) : result);
}

/// The larger of bytes under a window, with channels last.
Result<std::vector<Expr>> ReadNhwcMaxPool(NodeReader& node) {
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  const Expr image = MoveChannels(formula, COLLAGE_TRY(node.Input(0)), true);
  COLLAGE_TRY(formula.Done(image));
  return formula.Done(MoveChannels(formula, COLLAGE_TRY(node.ReadAs("MaxPool", {image}))[0], false));
}

/// As Conv, with the channels of data and weights last.
Result<std::vector<Expr>> ReadNhwcConv(NodeReader& node) {
  std::vector<Expr> inputs = COLLAGE_TRY(AllInputs(node));
  if (inputs.size() < 2) return Fail("has no weights");
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  for (size_t i : {0, 1}) inputs[i] = MoveChannels(formula, COLLAGE_TRY(node.Input(i)), true);
  COLLAGE_TRY(formula.DoneAll(inputs));
  return formula.Done(MoveChannels(formula, COLLAGE_TRY(node.ReadAs("Conv", std::move(inputs)))[0], false));
}

/// (condition, X, Y), each of these with scale and zero point.
Result<std::vector<Expr>> ReadQLinearWhere(NodeReader& node) {
  Formula formula(node, DType::kFloat32);
  const Expr x = COLLAGE_TRY(Dequantized(node, formula, 1));
  const Expr y = COLLAGE_TRY(Dequantized(node, formula, 4));
  const Expr chosen = formula.Apply("where", {COLLAGE_TRY(node.Input(0)), x, y});
  return Quantized(node, formula, chosen, 7, COLLAGE_TRY(node.InputType(1)).dtype);
}

/// (data, scale, zero point), then the scale and zero point of the result of a pooling.
template <OperatorName op_type>
Result<std::vector<Expr>> ReadQLinearPool(NodeReader& node) {
  const bool is_last = COLLAGE_TRY(node.Int("channels_last", 0)) != 0;
  Formula formula(node, DType::kFloat32);
  Expr data = COLLAGE_TRY(Dequantized(node, formula, 0));
  if (is_last) data = MoveChannels(formula, data, true);
  COLLAGE_TRY(formula.Done(data));
  Expr result = COLLAGE_TRY(node.ReadAs(op_type.text, {data}))[0];
  if (is_last) result = MoveChannels(formula, result, false);
  return Quantized(node, formula, result, 3, COLLAGE_TRY(node.InputType(0)).dtype);
}

/// Attribute 'opset' says which definition of Softmax is meant: since 13 it is over one dimension, before over all from it on.
Result<std::vector<Expr>> ReadQLinearSoftmax(NodeReader& node) {
  Formula formula(node, DType::kFloat32);
  const Expr data = COLLAGE_TRY(Dequantized(node, formula, 0));
  COLLAGE_TRY(formula.Done(data));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const int64_t axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(node.Int("axis", -1)), type.shape.size()));
  Shape shape = type.shape;
  if (COLLAGE_TRY(node.Int("opset", 13)) < 13) {
    shape.resize(static_cast<size_t>(axis));
    const int64_t rest = ElementCount(Shape(type.shape.begin() + axis, type.shape.end()));
    shape.push_back(rest);
  }
  const Expr softmax = formula.Apply("nn.softmax", {formula.Reshape(data, shape)}, {{"axis", axis}});
  return Quantized(node, formula, formula.Reshape(softmax, type.shape), 3, COLLAGE_TRY(node.InputType(0)).dtype);
}

/// Data, weight of columns, then what is added to the product: a vector of the columns.
Expr WithColumnBias(Formula& formula, const Expr& product, const Expr& bias) {
  return bias == nullptr ? product : formula.Call("add", product, bias);
}

/// A times B, where B is quantized and A is quantized here, over the range of its elements.
Result<std::vector<Expr>> ReadDynamicQuantizeMatMul(NodeReader& node) {
  const std::vector<Expr> a = COLLAGE_TRY(node.ReadAs("DynamicQuantizeLinear", {COLLAGE_TRY(node.Input(0))}));
  const Expr zero = node.HasInput(3) ? COLLAGE_TRY(node.Input(3)) : Expr();
  const Expr sums = COLLAGE_TRY(node.ReadAs("MatMulInteger", {a[0], COLLAGE_TRY(node.Input(1)), a[2], zero}))[0];
  Formula formula(node, DType::kFloat32);
  const Expr scale = formula.Call("multiply", a[1], COLLAGE_TRY(node.Input(2)));
  const Expr product = formula.Call("multiply", formula.Cast(sums, DType::kFloat32), scale);
  return formula.Done(WithColumnBias(formula, product, node.HasInput(4) ? COLLAGE_TRY(node.Input(4)) : Expr()));
}

/// (A, B, scale of A, scale of B, their zero points, bias).
Result<std::vector<Expr>> ReadMatMulIntegerToFloat(NodeReader& node) {
  const auto optional = [&](size_t i) -> Result<Expr> { return node.HasInput(i) ? COLLAGE_TRY(node.Input(i)) : Expr(); };
  const std::vector<Expr> operands{COLLAGE_TRY(node.Input(0)), COLLAGE_TRY(node.Input(1)), COLLAGE_TRY(optional(4)),
                                   COLLAGE_TRY(optional(5))};
  const Expr sums = COLLAGE_TRY(node.ReadAs("MatMulInteger", operands))[0];
  Formula formula(node, COLLAGE_TRY(node.InputType(2)).dtype);
  const Expr scale = formula.Call("multiply", COLLAGE_TRY(node.Input(2)), COLLAGE_TRY(node.Input(3)));
  const Expr product = formula.Call("multiply", formula.Cast(sums, formula.dtype()), scale);
  return formula.Done(WithColumnBias(formula, product, COLLAGE_TRY(optional(6))));
}

/// The scale and zero point of the result come first.
Result<std::vector<Expr>> ReadQLinearConcat(NodeReader& node) {
  Formula formula(node, DType::kFloat32);
  std::vector<Expr> parts;
  for (size_t i = 2; i < node.input_count(); i += 3) parts.push_back(COLLAGE_TRY(Dequantized(node, formula, i)));
  if (parts.empty()) return Fail("has no tensors to join");
  const int64_t axis = COLLAGE_TRY(node.Int("axis", 0));
  return Quantized(node, formula, formula.Concatenate(parts, axis), 0, COLLAGE_TRY(node.InputType(2)).dtype);
}

}  // namespace

OperatorFamily ContribQuantizationFamily() {
  static constexpr ReadRow kRead[] = {{"com.microsoft.MatMulNBits", ReadMatMulNBits},
                                      {"com.microsoft.MatMulBnb4", ReadMatMulBnb4},
                                      {"com.microsoft.NhwcMaxPool", ReadNhwcMaxPool},
                                      {"com.microsoft.NhwcConv", ReadNhwcConv},
                                      {"com.microsoft.QLinearWhere", ReadQLinearWhere},
                                      {"com.microsoft.GatherBlockQuantized", ReadGatherBlockQuantized},
                                      {"com.microsoft.DynamicQuantizeMatMul", ReadDynamicQuantizeMatMul},
                                      {"com.microsoft.MatMulIntegerToFloat", ReadMatMulIntegerToFloat},
                                      {"com.microsoft.QuantizeLinear", ReadAsDefault<"QuantizeLinear">},
                                      {"com.microsoft.DequantizeLinear", ReadAsDefault<"DequantizeLinear">},
                                      {"com.microsoft.QLinearAdd", ReadQLinearBinary<false>},
                                      {"com.microsoft.QLinearMul", ReadQLinearBinary<true>},
                                      {"com.microsoft.QLinearSigmoid", ReadQLinearUnary<false>},
                                      {"com.microsoft.QLinearLeakyRelu", ReadQLinearUnary<true>},
                                      {"com.microsoft.QLinearConv", ReadQLinearConvOfMicrosoft},
                                      {"com.microsoft.QLinearAveragePool", ReadQLinearPool<"AveragePool">},
                                      {"com.microsoft.QLinearGlobalAveragePool", ReadQLinearPool<"GlobalAveragePool">},
                                      {"com.microsoft.QLinearSoftmax", ReadQLinearSoftmax},
                                      {"com.microsoft.QLinearConcat", ReadQLinearConcat}};
  static constexpr WriteRow kWrite[] = {{"nn.matmul_nbits", WriteMatMulNBits}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
