#include "collage/onnx/data_type.h"
#include "collage/onnx/direct.h"
#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"

namespace collage::onnx_io {
namespace {

Result<std::vector<Expr>> CastTo(NodeReader& node, DType dtype) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  if (COLLAGE_TRY(TensorTypeOf(data)).dtype == dtype) return std::vector<Expr>{data};
  return std::vector<Expr>{COLLAGE_TRY(node.Call("cast", {data}, {{"dtype", std::string(Name(dtype))}}))};
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

/// In inference Dropout does nothing; its mask, the second output, is not supported.
Result<std::vector<Expr>> ReadDropout(NodeReader& node) {
  if (node.opset() >= 12 && node.HasInput(2)) {
    const Tensor training = COLLAGE_TRY(node.ConstantInput(2, "training_mode"));
    if (training.dtype() != DType::kBool || training.ElementCount() != 1 || training.Values<bool>()[0]) {
      return Fail("input 2 (training_mode) must be False");
    }
  }
  return ReadIdentity(node);
}

Status WriteCast(NodeWriter& writer) {
  writer.Emit("Cast", writer.Inputs(), {{"to", OnnxDataType(writer.OutputType().dtype)}});
  return {};
}

Status WriteRsqrt(NodeWriter& writer) {
  writer.Emit("Reciprocal", {writer.EmitIntermediate("Sqrt", writer.Inputs())});
  return {};
}

constexpr ReadRow kRead[] = {{"Abs", ReadDirect<"abs">},         {"Neg", ReadDirect<"negative">}, {"Exp", ReadDirect<"exp">},
                             {"Log", ReadDirect<"log">},         {"Sqrt", ReadDirect<"sqrt">},    {"Erf", ReadDirect<"erf">},
                             {"Sin", ReadDirect<"sin">},         {"Cos", ReadDirect<"cos">},      {"Ceil", ReadDirect<"ceil">},
                             {"Floor", ReadDirect<"floor">},     {"Round", ReadDirect<"round">},  {"Sign", ReadDirect<"sign">},
                             {"Not", ReadDirect<"logical_not">}, {"Reciprocal", ReadReciprocal},  {"Cast", ReadCast},
                             {"CastLike", ReadCastLike},         {"Identity", ReadIdentity},      {"Dropout", ReadDropout}};
constexpr WriteRow kWrite[] = {{"abs", WriteDirect<"Abs">},       {"negative", WriteDirect<"Neg">},
                               {"exp", WriteDirect<"Exp">},       {"log", WriteDirect<"Log">},
                               {"sqrt", WriteDirect<"Sqrt">},     {"rsqrt", WriteRsqrt},
                               {"erf", WriteDirect<"Erf">},       {"sin", WriteDirect<"Sin">},
                               {"cos", WriteDirect<"Cos">},       {"ceil", WriteDirect<"Ceil">},
                               {"floor", WriteDirect<"Floor">},   {"round", WriteDirect<"Round">},
                               {"sign", WriteDirect<"Sign">},     {"logical_not", WriteDirect<"Not">},
                               {"copy", WriteDirect<"Identity">}, {"cast", WriteCast}};

}  // namespace

OperatorFamily ElementwiseFamily() { return {kRead, kWrite}; }

}  // namespace collage::onnx_io
