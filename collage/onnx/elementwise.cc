#include "collage/onnx/data_type.h"
#include "collage/onnx/direct.h"
#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"
#include "collage/onnx/writer.h"

namespace collage::onnx_io {
namespace {

Result<std::vector<Expr>> CastTo(NodeReader& node, DType dtype) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  if (COLLAGE_TRY(TensorTypeOf(data)).dtype == dtype) return std::vector<Expr>{data};
  Attributes attributes{{"dtype", std::string(Name(dtype))}};
  if (COLLAGE_TRY(node.Int("saturate", 1)) == 0) attributes.Set("saturate", false);
  if (const std::string mode = COLLAGE_TRY(node.String("round_mode", "up")); mode != "up") attributes.Set("round_mode", mode);
  return std::vector<Expr>{COLLAGE_TRY(node.Call("cast", {data}, attributes))};
}

Result<std::vector<Expr>> ReadCast(NodeReader& node) {
  const int64_t to = COLLAGE_TRY(node.Int("to", 0));
  const std::optional<DType> dtype = DTypeOfOnnx(to);
  if (!dtype) return Fail("attribute 'to' is the data type " + std::to_string(to) + ", which is not supported");
  return CastTo(node, *dtype);
}

Result<std::vector<Expr>> ReadCastLike(NodeReader& node) { return CastTo(node, COLLAGE_TRY(node.InputType(1)).dtype); }

Result<std::vector<Expr>> ReadReciprocal(NodeReader& node) {
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  return formula.Done(formula.Call("divide", 1.0, COLLAGE_TRY(node.Input(0))));
}

Result<std::vector<Expr>> ReadIdentity(NodeReader& node) { return std::vector<Expr>{COLLAGE_TRY(node.Input(0))}; }

/// In inference Dropout does nothing, and its mask, the second output, lets everything through.
Result<std::vector<Expr>> ReadDropout(NodeReader& node) {
  if (node.opset() >= 12 && node.HasInput(2)) {
    const Tensor training = COLLAGE_TRY(node.ConstantInput(2, "training_mode"));
    if (training.dtype() != DType::kBool || training.ElementCount() != 1 || training.Values<bool>()[0]) {
      return Fail("input 2 (training_mode) must be False");
    }
  }
  std::vector<Expr> outputs = COLLAGE_TRY(ReadIdentity(node));
  if (node.output_count() < 2) return outputs;
  const TensorType type = COLLAGE_TRY(TensorTypeOf(outputs[0]));
  const DType mask = node.opset() < 10 ? type.dtype : DType::kBool;
  outputs.push_back(COLLAGE_TRY(node.Call("ones", {}, {{"shape", type.shape}, {"dtype", std::string(Name(mask))}})));
  return outputs;
}

/// Infinities of the signs that are asked for.
Result<std::vector<Expr>> ReadIsInf(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const bool positive = COLLAGE_TRY(node.Int("detect_positive", 1)) != 0;
  const bool negative = COLLAGE_TRY(node.Int("detect_negative", 1)) != 0;
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  const Expr infinite = formula.Apply("isinf", {data});
  if (positive && negative) return formula.Done(infinite);
  if (!positive && !negative) return formula.Done(formula.Apply("not_equal", {infinite, infinite}));
  return formula.Done(formula.Apply("logical_and", {infinite, formula.Call(positive ? "greater" : "less", data, 0.0)}));
}

/// The bits of a type of the same width under another.
Result<std::vector<Expr>> ReadBitCast(NodeReader& node) {
  const int64_t to = COLLAGE_TRY(node.Int("to", 0));
  const std::optional<DType> dtype = DTypeOfOnnx(to);
  if (!dtype) return Fail("attribute 'to' is the data type " + std::to_string(to) + ", which is not supported");
  return std::vector<Expr>{COLLAGE_TRY(node.Call("reinterpret", {COLLAGE_TRY(node.Input(0))}, {{"dtype", std::string(Name(*dtype))}}))};
}

/// x - bias above lambd, x + bias below -lambd, else 0.
Result<std::vector<Expr>> ReadShrink(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const double lambd = COLLAGE_TRY(node.Float("lambd", 0.5F));
  const double bias = COLLAGE_TRY(node.Float("bias", 0));
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  const Expr below = formula.Call("where", formula.Call("less", data, -lambd), formula.Call("add", data, bias), 0.0);
  return formula.Done(formula.Call("where", formula.Call("greater", data, lambd), formula.Call("subtract", data, bias), below));
}

Status WriteUnwritable(NodeWriter& writer) {
  return Fail(writer.step().op->name + " has no form in opset " + std::to_string(kWrittenOpset));
}

Status WriteCast(NodeWriter& writer) {
  writer.Emit("Cast", writer.Inputs(), {{"to", OnnxDataType(writer.OutputType().dtype)}});
  return {};
}

Status WriteRsqrt(NodeWriter& writer) {
  writer.Emit("Reciprocal", {writer.EmitIntermediate("Sqrt", writer.Inputs())});
  return {};
}

}  // namespace

OperatorFamily ElementwiseFamily() {
  static constexpr ReadRow kRead[] = {{"Abs", ReadDirect<"abs">},
                                      {"Neg", ReadDirect<"negative">},
                                      {"Exp", ReadDirect<"exp">},
                                      {"Log", ReadDirect<"log">},
                                      {"Sqrt", ReadDirect<"sqrt">},
                                      {"Erf", ReadDirect<"erf">},
                                      {"Sin", ReadDirect<"sin">},
                                      {"Cos", ReadDirect<"cos">},
                                      {"Ceil", ReadDirect<"ceil">},
                                      {"Floor", ReadDirect<"floor">},
                                      {"Round", ReadDirect<"round">},
                                      {"Sign", ReadDirect<"sign">},
                                      {"Not", ReadDirect<"logical_not">},
                                      {"Reciprocal", ReadReciprocal},
                                      {"Cast", ReadCast},
                                      {"Tan", ReadDirect<"tan">},
                                      {"Asin", ReadDirect<"asin">},
                                      {"Acos", ReadDirect<"acos">},
                                      {"Atan", ReadDirect<"atan">},
                                      {"Sinh", ReadDirect<"sinh">},
                                      {"Cosh", ReadDirect<"cosh">},
                                      {"Asinh", ReadDirect<"asinh">},
                                      {"Acosh", ReadDirect<"acosh">},
                                      {"Atanh", ReadDirect<"atanh">},
                                      {"IsNaN", ReadDirect<"isnan">},
                                      {"IsInf", ReadIsInf},
                                      {"Shrink", ReadShrink},
                                      {"BitwiseNot", ReadDirect<"bitwise_not">},
                                      {"BitCast", ReadBitCast},
                                      {"CastLike", ReadCastLike},
                                      {"Identity", ReadIdentity, true},
                                      {"Dropout", ReadDropout}};
  static constexpr WriteRow kWrite[] = {{"abs", WriteDirect<"Abs">},
                                        {"negative", WriteDirect<"Neg">},
                                        {"exp", WriteDirect<"Exp">},
                                        {"log", WriteDirect<"Log">},
                                        {"sqrt", WriteDirect<"Sqrt">},
                                        {"rsqrt", WriteRsqrt},
                                        {"erf", WriteDirect<"Erf">},
                                        {"sin", WriteDirect<"Sin">},
                                        {"cos", WriteDirect<"Cos">},
                                        {"ceil", WriteDirect<"Ceil">},
                                        {"floor", WriteDirect<"Floor">},
                                        {"round", WriteDirect<"Round">},
                                        {"sign", WriteDirect<"Sign">},
                                        {"logical_not", WriteDirect<"Not">},
                                        {"tan", WriteDirect<"Tan">},
                                        {"asin", WriteDirect<"Asin">},
                                        {"acos", WriteDirect<"Acos">},
                                        {"atan", WriteDirect<"Atan">},
                                        {"sinh", WriteDirect<"Sinh">},
                                        {"cosh", WriteDirect<"Cosh">},
                                        {"asinh", WriteDirect<"Asinh">},
                                        {"acosh", WriteDirect<"Acosh">},
                                        {"atanh", WriteDirect<"Atanh">},
                                        {"isnan", WriteDirect<"IsNaN">},
                                        {"isinf", WriteDirect<"IsInf">},
                                        {"bitwise_not", WriteUnwritable},
                                        {"reinterpret", WriteUnwritable},
                                        {"copy", WriteDirect<"Identity">},
                                        {"cast", WriteCast}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
