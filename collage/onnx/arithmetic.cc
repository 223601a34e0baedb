#include "collage/onnx/direct.h"
#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"

namespace collage::onnx_io {
namespace {

/// Left to right over any number of inputs.
template <OperatorName op>
Result<std::vector<Expr>> ReadVariadic(NodeReader& node) {
  Expr result = COLLAGE_TRY(node.Input(0));
  for (size_t i = 1; i < node.input_count(); ++i) {
    const Expr input = COLLAGE_TRY(node.Input(i));
    result = COLLAGE_TRY(node.Call(op.text, {result, input}));
  }
  return std::vector<Expr>{result};
}

Result<std::vector<Expr>> ReadMean(NodeReader& node) {
  const std::vector<Expr> sum = COLLAGE_TRY(ReadVariadic<"add">(node));
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  return formula.Done(formula.Call("divide", sum[0], static_cast<double>(node.input_count())));
}

/// The exponent may have a type of its own; ours has the base's.
Result<std::vector<Expr>> ReadPow(NodeReader& node) {
  const Expr base = COLLAGE_TRY(node.Input(0));
  Expr exponent = COLLAGE_TRY(node.Input(1));
  const DType dtype = COLLAGE_TRY(TensorTypeOf(base)).dtype;
  if (COLLAGE_TRY(TensorTypeOf(exponent)).dtype != dtype) {
    exponent = COLLAGE_TRY(node.Call("cast", {exponent}, {{"dtype", std::string(Name(dtype))}}));
  }
  return std::vector<Expr>{COLLAGE_TRY(node.Call("power", {base, exponent}))};
}

/// The sign of the divisor with fmod=0; of the dividend, as C's fmod, with fmod=1.
Result<std::vector<Expr>> ReadMod(NodeReader& node) {
  const Expr a = COLLAGE_TRY(node.Input(0));
  const Expr b = COLLAGE_TRY(node.Input(1));
  if (COLLAGE_TRY(node.Int("fmod", 0)) == 0) return std::vector<Expr>{COLLAGE_TRY(node.Call("floor_mod", {a, b}))};
  Formula formula(node, COLLAGE_TRY(TensorTypeOf(a)).dtype);
  const Expr magnitude = formula.Call("floor_mod", formula.Call("abs", a), formula.Call("abs", b));
  return formula.Done(formula.Call("multiply", formula.Call("sign", a), magnitude));
}

Status WriteNotEqual(NodeWriter& writer) {
  writer.Emit("Not", {writer.EmitIntermediate("Equal", writer.Inputs())});
  return {};
}

/// ONNX's Mod has the sign of the divisor for integers only.
Status WriteFloorMod(NodeWriter& writer) {
  if (!IsFloatingPoint(writer.InputType(0).dtype)) return WriteDirect<"Mod">(writer);
  const std::string quotient = writer.EmitIntermediate("Floor", {writer.EmitIntermediate("Div", writer.Inputs())});
  writer.Emit("Sub", {writer.Input(0), writer.EmitIntermediate("Mul", {quotient, writer.Input(1)})});
  return {};
}

constexpr ReadRow kRead[] = {{"Add", ReadDirect<"add">},
                             {"Sub", ReadDirect<"subtract">},
                             {"Mul", ReadDirect<"multiply">},
                             {"Div", ReadDirect<"divide">},
                             {"Pow", ReadPow},
                             {"Mod", ReadMod},
                             {"Sum", ReadVariadic<"add">},
                             {"Max", ReadVariadic<"maximum">},
                             {"Min", ReadVariadic<"minimum">},
                             {"Mean", ReadMean},
                             {"Equal", ReadDirect<"equal">},
                             {"Greater", ReadDirect<"greater">},
                             {"GreaterOrEqual", ReadDirect<"greater_equal">},
                             {"Less", ReadDirect<"less">},
                             {"LessOrEqual", ReadDirect<"less_equal">},
                             {"And", ReadDirect<"logical_and">},
                             {"Or", ReadDirect<"logical_or">},
                             {"Xor", ReadDirect<"not_equal">},
                             {"Where", ReadDirect<"where">}};
constexpr WriteRow kWrite[] = {{"add", WriteDirect<"Add">},         {"subtract", WriteDirect<"Sub">},
                               {"multiply", WriteDirect<"Mul">},    {"divide", WriteDirect<"Div">},
                               {"power", WriteDirect<"Pow">},       {"maximum", WriteDirect<"Max">},
                               {"minimum", WriteDirect<"Min">},     {"floor_mod", WriteFloorMod},
                               {"equal", WriteDirect<"Equal">},     {"not_equal", WriteNotEqual},
                               {"greater", WriteDirect<"Greater">}, {"greater_equal", WriteDirect<"GreaterOrEqual">},
                               {"less", WriteDirect<"Less">},       {"less_equal", WriteDirect<"LessOrEqual">},
                               {"logical_and", WriteDirect<"And">}, {"logical_or", WriteDirect<"Or">},
                               {"where", WriteDirect<"Where">}};

}  // namespace

OperatorFamily ArithmeticFamily() { return {kRead, kWrite}; }

}  // namespace collage::onnx_io
