#include "collage/onnx/direct.h"
#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"
#include "collage/onnx/writer.h"

namespace collage::onnx_io {
namespace {

/// Until opset 6 the right operand only broadcasts where the attribute broadcast says so, and then from dimension axis on.
Result<std::vector<Expr>> ReadOldBroadcast(NodeReader& node, const std::string& op) {
  const Expr a = COLLAGE_TRY(node.Input(0));
  Expr b = COLLAGE_TRY(node.Input(1));
  const size_t rank = COLLAGE_TRY(TensorTypeOf(a)).shape.size();
  Shape shape = COLLAGE_TRY(TensorTypeOf(b)).shape;
  if (COLLAGE_TRY(node.Int("broadcast", 0)) != 0 && node.HasAttribute("axis") && shape.size() < rank) {
    const int64_t axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(node.Int("axis", 0)), rank));
    shape.resize(std::max(shape.size(), rank - static_cast<size_t>(axis)), 1);
    b = COLLAGE_TRY(node.Reshape(b, shape));
  }
  return std::vector<Expr>{COLLAGE_TRY(node.Call(op, {a, b}))};
}

template <OperatorName op>
Result<std::vector<Expr>> ReadBinary(NodeReader& node) {
  return node.opset() < 7 ? ReadOldBroadcast(node, op.text) : ReadDirect<op>(node);
}

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
  if (node.opset() < 7) return ReadOldBroadcast(node, "power");
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

Result<std::vector<Expr>> ReadBitShift(NodeReader& node) {
  const std::string direction = COLLAGE_TRY(node.String("direction", ""));
  if (direction == "LEFT") return ReadDirect<"left_shift">(node);
  if (direction == "RIGHT") return ReadDirect<"right_shift">(node);
  return Fail("attribute 'direction' is '" + direction + "'; LEFT or RIGHT is right");
}

/// BitShift takes unsigned types only.
template <OperatorName direction>
Status WriteShift(NodeWriter& writer) {
  const DType dtype = writer.InputType(0).dtype;
  const bool is_unsigned = dtype == DType::kUInt8 || dtype == DType::kUInt16 || dtype == DType::kUInt32 || dtype == DType::kUInt64;
  if (!is_unsigned) return Fail("of " + std::string(Name(dtype)) + " has no ONNX form");
  writer.Emit("BitShift", writer.Inputs(), {{"direction", std::string(direction.text)}});
  return {};
}

/// The bitwise operators are younger than the opset that is written.
Status WriteBitwise(NodeWriter&) { return Fail("has no form in opset " + std::to_string(kWrittenOpset)); }

Status WriteNotEqual(NodeWriter& writer) {
  writer.Emit("Not", {writer.EmitIntermediate("Equal", writer.Inputs())});
  return {};
}

/// ONNX's Mod has the sign of the divisor for integers only.
Status WriteFloorMod(NodeWriter& writer) {
  if (!IsFloatingPoint(writer.InputType(0).dtype)) return WriteDirect<"Mod">(writer);
  // The remainder with the dividend's sign, to which the divisor is added where that is not its own. (a - floor(a / b) * b would
  // be NaN for an infinite divisor.)
  const std::string zero = writer.Scalar(0, writer.InputType(0).dtype);
  const std::string remainder = writer.EmitIntermediate("Mod", writer.Inputs(), {{"fmod", int64_t{1}}});
  const std::string is_zero = writer.EmitIntermediate("Equal", {remainder, zero});
  const std::string differs = writer.EmitIntermediate(
      "Xor", {writer.EmitIntermediate("Less", {remainder, zero}), writer.EmitIntermediate("Less", {writer.Input(1), zero})});
  const std::string moves = writer.EmitIntermediate("And", {differs, writer.EmitIntermediate("Not", {is_zero})});
  writer.Emit("Where", {moves, writer.EmitIntermediate("Add", {remainder, writer.Input(1)}), remainder});
  return {};
}

}  // namespace

OperatorFamily ArithmeticFamily() {
  static constexpr ReadRow kRead[] = {{"Add", ReadBinary<"add">},
                                      {"Sub", ReadBinary<"subtract">},
                                      {"Mul", ReadBinary<"multiply">},
                                      {"Div", ReadBinary<"divide">},
                                      {"Pow", ReadPow},
                                      {"Mod", ReadMod},
                                      {"Sum", ReadVariadic<"add">},
                                      {"Max", ReadVariadic<"maximum">},
                                      {"Min", ReadVariadic<"minimum">},
                                      {"Mean", ReadMean},
                                      {"Equal", ReadBinary<"equal">},
                                      {"Greater", ReadBinary<"greater">},
                                      {"GreaterOrEqual", ReadDirect<"greater_equal">},
                                      {"Less", ReadBinary<"less">},
                                      {"LessOrEqual", ReadDirect<"less_equal">},
                                      {"And", ReadBinary<"logical_and">},
                                      {"Or", ReadBinary<"logical_or">},
                                      {"Xor", ReadBinary<"not_equal">},
                                      {"BitShift", ReadBitShift},
                                      {"BitwiseAnd", ReadDirect<"bitwise_and">},
                                      {"BitwiseOr", ReadDirect<"bitwise_or">},
                                      {"BitwiseXor", ReadDirect<"bitwise_xor">},
                                      {"Where", ReadDirect<"where">}};
  static constexpr WriteRow kWrite[] = {{"add", WriteDirect<"Add">},         {"subtract", WriteDirect<"Sub">},
                                        {"multiply", WriteDirect<"Mul">},    {"divide", WriteDirect<"Div">},
                                        {"power", WriteDirect<"Pow">},       {"maximum", WriteDirect<"Max">},
                                        {"minimum", WriteDirect<"Min">},     {"floor_mod", WriteFloorMod},
                                        {"equal", WriteDirect<"Equal">},     {"not_equal", WriteNotEqual},
                                        {"greater", WriteDirect<"Greater">}, {"greater_equal", WriteDirect<"GreaterOrEqual">},
                                        {"less", WriteDirect<"Less">},       {"less_equal", WriteDirect<"LessOrEqual">},
                                        {"logical_and", WriteDirect<"And">}, {"logical_or", WriteDirect<"Or">},
                                        {"left_shift", WriteShift<"LEFT">},  {"right_shift", WriteShift<"RIGHT">},
                                        {"bitwise_and", WriteBitwise},       {"bitwise_or", WriteBitwise},
                                        {"bitwise_xor", WriteBitwise},       {"where", WriteDirect<"Where">}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
