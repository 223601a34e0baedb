#include "collage/onnx/integer_products.h"
#include "collage/onnx/node_reader.h"
#include "collage/onnx/node_writer.h"
#include "collage/onnx/rows.h"

namespace collage::onnx_io {
namespace {

Result<Expr> Transposed(NodeReader& node, const Expr& matrix) {
  return node.Call("transpose", {matrix}, {{"axes", std::vector<int64_t>{1, 0}}});
}

Result<Expr> Scaled(NodeReader& node, const Expr& data, double factor) {
  if (factor == 1) return data;
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const Expr scalar = COLLAGE_TRY(NodeReader::Scalar(factor, type.dtype));
  return node.Call("multiply", {data, scalar});
}

/// alpha A' B' + beta C as a dense layer, whose weight is B transposed. alpha goes into a constant weight, beta into C.
Result<std::vector<Expr>> ReadGemm(NodeReader& node) {
  Expr a = COLLAGE_TRY(node.Input(0));
  Expr weight = COLLAGE_TRY(node.Input(1));
  if (COLLAGE_TRY(TensorTypeOf(a)).shape.size() != 2 || COLLAGE_TRY(TensorTypeOf(weight)).shape.size() != 2) {
    return Fail("A and B must have two dimensions");
  }
  if (COLLAGE_TRY(node.Int("transA", 0)) != 0) a = COLLAGE_TRY(Transposed(node, a));
  if (COLLAGE_TRY(node.Int("transB", 0)) == 0) weight = COLLAGE_TRY(Transposed(node, weight));
  const double alpha = COLLAGE_TRY(node.Float("alpha", 1));
  const bool scales_weight = ConstantValue(weight) != nullptr;
  if (scales_weight) weight = COLLAGE_TRY(Scaled(node, weight, alpha));
  const int64_t units = COLLAGE_TRY(TensorTypeOf(weight)).shape[0];
  Expr result = COLLAGE_TRY(node.Call("nn.dense", {a, weight}, {{"units", units}}));
  if (!scales_weight) result = COLLAGE_TRY(Scaled(node, result, alpha));
  if (!node.HasInput(2)) return std::vector<Expr>{result};
  const double beta = COLLAGE_TRY(node.Float("beta", 1));
  const Expr c = COLLAGE_TRY(Scaled(node, COLLAGE_TRY(node.Input(2)), beta));
  if (COLLAGE_TRY(TensorTypeOf(c)).shape == Shape{units}) {
    return std::vector<Expr>{COLLAGE_TRY(node.Call("nn.bias_add", {result, c}, {{"axis", -1}}))};
  }
  return std::vector<Expr>{COLLAGE_TRY(node.Call("add", {result, c}))};
}

/// NumPy's matmul: a vector on the left is a row, on the right a column, and its dimension is dropped from the result.
Result<std::vector<Expr>> ReadMatMul(NodeReader& node) {
  Expr a = COLLAGE_TRY(node.Input(0));
  Expr b = COLLAGE_TRY(node.Input(1));
  const size_t rank_a = COLLAGE_TRY(TensorTypeOf(a)).shape.size();
  const size_t rank_b = COLLAGE_TRY(TensorTypeOf(b)).shape.size();
  if (rank_a == 0 || rank_b == 0) return Fail("scalars are no matrices");
  if (rank_a == 1) a = COLLAGE_TRY(node.Call("expand_dims", {a}, {{"axis", 0}}));
  if (rank_b == 1) b = COLLAGE_TRY(node.Call("expand_dims", {b}, {{"axis", 1}}));
  Expr result = COLLAGE_TRY(node.Call("nn.matmul", {a, b}));
  if (rank_b == 1) result = COLLAGE_TRY(node.Call("squeeze", {result}, {{"axis", std::vector<int64_t>{-1}}}));
  if (rank_a == 1) {
    const int64_t row = rank_b == 1 ? -1 : -2;
    result = COLLAGE_TRY(node.Call("squeeze", {result}, {{"axis", std::vector<int64_t>{row}}}));
  }
  return std::vector<Expr>{result};
}

/// The last two dimensions swapped.
std::string SwapLast(NodeWriter& writer, size_t input) {
  std::vector<int64_t> permutation;
  const size_t rank = writer.InputType(input).shape.size();
  for (size_t i = 0; i < rank; ++i) permutation.push_back(static_cast<int64_t>(i));
  std::swap(permutation[rank - 1], permutation[rank - 2]);
  return writer.EmitIntermediate("Transpose", {writer.Input(input)}, {{"perm", permutation}});
}

Status WriteDense(NodeWriter& writer) {
  const size_t rank = writer.InputType(0).shape.size();
  // Runtimes have Gemm of numbers only.
  if (rank != 2 || !IsFloatingPoint(writer.InputType(0).dtype)) {
    writer.Emit("MatMul", {writer.Input(0), SwapLast(writer, 1)});
    return {};
  }
  std::vector<std::string> inputs = writer.Inputs();
  if (std::optional<std::string> bias = writer.AbsorbBias(1)) inputs.push_back(*bias);
  writer.Emit("Gemm", inputs, {{"transB", int64_t{1}}});
  return {};
}

Status WriteProduct(NodeWriter& writer, bool transposes_b_by_default) {
  const bool transpose_a = COLLAGE_TRY(writer.attributes().Bool("transpose_a", false));
  const bool transpose_b = COLLAGE_TRY(writer.attributes().Bool("transpose_b", transposes_b_by_default));
  if (writer.is_complete() && !transpose_a && !transpose_b && WriteIntegerMatMul(writer)) return {};
  const std::string a = transpose_a ? SwapLast(writer, 0) : writer.Input(0);
  const std::string b = transpose_b ? SwapLast(writer, 1) : writer.Input(1);
  writer.Emit("MatMul", {a, b});
  return {};
}

Status WriteMatMul(NodeWriter& writer) { return WriteProduct(writer, false); }
Status WriteBatchMatMul(NodeWriter& writer) { return WriteProduct(writer, true); }

/// The bias as a constant of shape (C, 1, ...), or reshaped to it.
Status WriteBiasAdd(NodeWriter& writer) {
  const int64_t rank = static_cast<int64_t>(writer.InputType(0).shape.size());
  int64_t axis = COLLAGE_TRY(writer.attributes().Int("axis", 1));
  if (axis < 0) axis += rank;
  Shape column(static_cast<size_t>(rank - axis), 1);
  column[0] = writer.InputType(1).shape[0];
  if (column.size() == 1) {
    writer.Emit("Add", writer.Inputs());
    return {};
  }
  const Tensor* bias = writer.InputConstant(1);
  const std::string aligned = bias != nullptr ? writer.Initializer(bias->Reshaped(column))
                                              : writer.EmitIntermediate("Reshape", {writer.Input(1), writer.Ints(column)});
  writer.Emit("Add", {writer.Input(0), aligned});
  return {};
}

}  // namespace

OperatorFamily MatrixFamily() {
  static constexpr ReadRow kRead[] = {{"Gemm", ReadGemm}, {"MatMul", ReadMatMul}};
  static constexpr WriteRow kWrite[] = {
      {"nn.dense", WriteDense}, {"nn.matmul", WriteMatMul}, {"nn.batch_matmul", WriteBatchMatMul}, {"nn.bias_add", WriteBiasAdd}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
