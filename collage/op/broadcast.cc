#include <algorithm>
#include <array>
#include <cmath>

#include "collage/op/binary_kernel.h"
#include "collage/op/families.h"
#include "collage/op/kernels.h"
#include "collage/op/rules.h"
#include "collage/tensor/strings.h"

namespace collage {
namespace {

using Expectation = Status (*)(const TensorType&, std::string_view);

/// Two tensors of one dtype that broadcast; the result has that dtype, or bool for predicates.
OpDef::TypeRule BinaryType(Expectation expect, bool predicate) {
  return [=](TypeArguments arguments, const Attributes&) -> Result<Type> {
    const TensorType a = COLLAGE_TRY(TensorArgument(arguments, 0, "lhs"));
    const TensorType b = COLLAGE_TRY(TensorArgument(arguments, 1, "rhs"));
    COLLAGE_TRY_STATUS(expect(a, "lhs"));
    COLLAGE_TRY_STATUS(ExpectSameDType(b, "rhs", a, "lhs"));
    return Type(TensorType{COLLAGE_TRY(BroadcastShapes(a.shape, b.shape)), predicate ? DType::kBool : a.dtype});
  };
}

/// A vector along one axis of the data.
OpDef::TypeRule AlongAxisType(const char* name, Expectation expect) {
  return [=](TypeArguments arguments, const Attributes& attributes) -> Result<Type> {
    const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
    const TensorType vector = COLLAGE_TRY(TensorArgument(arguments, 1, name));
    COLLAGE_TRY_STATUS(expect(data, "data"));
    COLLAGE_TRY_STATUS(ExpectSameDType(vector, name, data, "data"));
    const size_t axis = COLLAGE_TRY(NormaliseAxis(IntAttribute(attributes, "axis", 1), data.shape.size()));
    COLLAGE_TRY_STATUS(ExpectShape(vector, name, {data.shape[axis]}));
    return Type(data);
  };
}

Result<Type> WhereType(TypeArguments arguments, const Attributes&) {
  const TensorType condition = COLLAGE_TRY(TensorArgument(arguments, 0, "condition"));
  const TensorType x = COLLAGE_TRY(TensorArgument(arguments, 1, "x"));
  const TensorType y = COLLAGE_TRY(TensorArgument(arguments, 2, "y"));
  COLLAGE_TRY_STATUS(ExpectBool(condition, "condition"));
  COLLAGE_TRY_STATUS(ExpectSameDType(y, "y", x, "x"));
  const Shape values = COLLAGE_TRY(BroadcastShapes(x.shape, y.shape));
  return Type(TensorType{COLLAGE_TRY(BroadcastShapes(condition.shape, values)), x.dtype});
}

Result<Type> BroadcastToType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const Shape shape = IntsAttribute(attributes, "shape", {});
  const Shape result = COLLAGE_TRY(BroadcastShapes(data.shape, shape));
  if (result != shape) {
    return Fail("attribute 'shape' is " + ToString(shape) + ", expected a shape that data of shape " + ToString(data.shape) +
                " broadcasts to");
  }
  return Type(TensorType{shape, data.dtype});
}

struct BinaryOptions {
  Expectation expect = ExpectNumber;
  bool predicate = false;
  bool commutative = false;
  bool within_arguments = false;
};

/// Equal strings have equal numbers.
template <class Function>
void EqualityKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  if (inputs[0].dtype() != DType::kString) return BinaryKernel<Function>(inputs, attributes, outputs);
  const std::array<Tensor, 2> numbers = {NumbersOfStrings(inputs[0]), NumbersOfStrings(inputs[1])};
  BinaryKernel<Function>(numbers, attributes, outputs);
}

template <class Function>
void AddEquality(OpTable& table, const char* name, const char* summary) {
  Register(table,
           {.name = name,
            .summary = summary,
            .argument_names = {"lhs", "rhs"},
            .kind = OpKind::kBroadcast,
            .commutative = true,
            .infer_type = BinaryType(ExpectComputable, true),
            .work = WorkPerOutput(1),
            .reference = EqualityKernel<Function>},
           NarrowTypes::kWidenedButStringsAsStored);
}

template <class Function>
void AddBinary(OpTable& table, const char* name, const char* summary, BinaryOptions options, Function) {
  Register(table, {.name = name,
                   .summary = summary,
                   .argument_names = {"lhs", "rhs"},
                   .kind = OpKind::kBroadcast,
                   .commutative = options.commutative,
                   .is_within_arguments = options.within_arguments,
                   .infer_type = BinaryType(options.expect, options.predicate),
                   .work = WorkPerOutput(1),
                   .reference = BinaryKernel<Function>});
}

void AddArithmetic(OpTable& table) {
  AddBinary(table, "add", "Sum; integers wrap around.", {.commutative = true}, AddFunction{});
  AddBinary(table, "subtract", "Difference; integers wrap around.", {}, SubtractFunction{});
  AddBinary(table, "multiply", "Product; integers wrap around.", {.commutative = true}, MultiplyFunction{});
  AddBinary(table, "divide", "Quotient; of integers towards zero, and 0 for a divisor of 0.", {}, DivideFunction{});
  AddBinary(table, "floor_mod", "Remainder with the sign of the divisor; for integers 0 for a divisor of 0.", {}, FloorModFunction{});
  AddBinary(table, "power", "lhs to the power of rhs; integers wrap around, negative powers of integers go towards zero.", {},
            PowerFunction{});
  AddBinary(table, "maximum", "The larger one; NaN if either is.", {.commutative = true, .within_arguments = true}, MaximumFunction{});
  AddBinary(table, "minimum", "The smaller one; NaN if either is.", {.commutative = true, .within_arguments = true}, MinimumFunction{});
}

void AddPredicates(OpTable& table) {
  AddEquality<std::equal_to<>>(table, "equal", "lhs == rhs.");
  AddEquality<std::not_equal_to<>>(table, "not_equal", "lhs != rhs.");
  const BinaryOptions order{ExpectNumber, true, false};
  AddBinary(table, "greater", "lhs > rhs.", order, std::greater<>{});
  AddBinary(table, "greater_equal", "lhs >= rhs.", order, std::greater_equal<>{});
  AddBinary(table, "less", "lhs < rhs.", order, std::less<>{});
  AddBinary(table, "less_equal", "lhs <= rhs.", order, std::less_equal<>{});
  const BinaryOptions logical{ExpectBool, true, true};
  AddBinary(table, "logical_and", "True where both are.", logical, std::logical_and<>{});
  AddBinary(table, "logical_or", "True where either is.", logical, std::logical_or<>{});
}

void AddBitOperators(OpTable& table) {
  const BinaryOptions bits{ExpectInteger, false, true};
  AddBinary(table, "bitwise_and", "Bits that both have.", bits, BitwiseAndFunction{});
  AddBinary(table, "bitwise_or", "Bits that either has.", bits, BitwiseOrFunction{});
  AddBinary(table, "bitwise_xor", "Bits that one of the two has.", bits, BitwiseXorFunction{});
  const BinaryOptions shift{ExpectInteger, false, false};
  AddBinary(table, "left_shift", "lhs times 2 to the power of rhs; bits that leave the type are lost.", shift, LeftShiftFunction{});
  AddBinary(table, "right_shift", "lhs divided by 2 to the power of rhs, towards minus infinity.", shift, RightShiftFunction{});
}

}  // namespace

void AddBroadcastOperators(OpTable& table) {
  AddArithmetic(table);
  AddBitOperators(table);
  AddPredicates(table);
  const AttributeSpec axis{"axis", "int", "dimension of data along which the vector lies, default 1"};
  Register(table, {.name = "nn.bias_add",
                   .summary = "Adds a vector along one axis.",
                   .argument_names = {"data", "bias"},
                   .attributes = {axis},
                   .kind = OpKind::kBroadcast,
                   .infer_type = AlongAxisType("bias", ExpectNumber),
                   .work = WorkPerOutput(1),
                   .reference = AlongAxisKernel<AddFunction>});
  Register(table, {.name = "nn.prelu",
                   .summary = "Negative elements are multiplied by a slope of their own channel.",
                   .argument_names = {"data", "alpha"},
                   .attributes = {axis},
                   .kind = OpKind::kBroadcast,
                   .infer_type = AlongAxisType("alpha", ExpectFloat),
                   .work = WorkPerOutput(1),
                   .reference = AlongAxisKernel<PreluFunction>});
  Register(table,
           {.name = "where",
            .summary = "x where condition is True, else y; all three broadcast.",
            .argument_names = {"condition", "x", "y"},
            .kind = OpKind::kBroadcast,
            .infer_type = WhereType,
            .work = WorkPerOutput(1),
            .reference = ReferenceWhere},
           NarrowTypes::kAsStored);
  Register(table,
           {.name = "broadcast_to",
            .summary = "Repeats dimensions of extent 1, and adds leading ones, up to a shape.",
            .argument_names = {"data"},
            .attributes = {{"shape", "ints", "shape of the result", true}},
            .kind = OpKind::kBroadcast,
            .is_within_arguments = true,
            .infer_type = BroadcastToType,
            .work = WorkPerOutput(0),
            .reference = ReferenceBroadcastTo},
           NarrowTypes::kAsStored);
}

}  // namespace collage
