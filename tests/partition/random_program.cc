#include "tests/partition/random_program.h"

#include <algorithm>

#include "collage/op/table.h"

namespace collage {
namespace {

const Type kType = TensorType{{2, 4}, DType::kFloat32};

Expr CallOf(const char* op, std::vector<Expr> args, Attributes attributes = {}) {
  return MakeCall(Operators().Find(op), std::move(args), std::move(attributes)).value();
}

}  // namespace

IRModule RandomProgram::Make() {
  const Expr pair = MakeVar("pair", TupleType{{kType, kType}});
  const std::vector<Expr> parameters = {MakeVar("x", kType), MakeVar("y", kType), pair};
  Values values = {parameters[0], parameters[1], MakeTupleGetItem(pair, Below(2)).value()};
  return IRModule::FromMain(MakeFunction(parameters, Block(std::move(values), 4 + Below(12), 0)).value());
}

Expr RandomProgram::Pick(const Values& values) {
  return Below(3) > 0 ? values[values.size() - 1 - Below(std::min<size_t>(values.size(), 3))] : values[Below(values.size())];
}

Expr RandomProgram::Weight() {
  Tensor weight(*kType.AsTensor());
  FillRandom(weight, random_());
  return MakeConstant(std::move(weight));
}

Expr RandomProgram::Block(Values values, size_t steps, size_t depth) {
  for (size_t i = 0; i < steps; ++i) {
    const size_t choice = depth < 3 ? Below(16) : 15;
    if (choice == 0 || choice == 1) {
      const Expr variable = MakeVar("v" + std::to_string(variables_++), kType);
      const Expr value = Pick(values);
      values.push_back(variable);
      return MakeLet(variable, value, Block(std::move(values), steps - i, depth)).value();
    }
    if (choice == 2) {
      const Expr condition = Condition(Pick(values));
      const Expr then_branch = Block(values, 1 + Below(3), depth + 1);
      const Expr else_branch = Block(values, 1 + Below(3), depth + 1);
      values.push_back(MakeIf(condition, then_branch, else_branch).value());
    } else if (choice == 3) {
      const Expr literal = Literal(values, depth + 1);
      values.push_back(MakeCall(literal, {Pick(values)}).value());
      if (Below(2) == 0) values.push_back(MakeCall(literal, {Pick(values)}).value());
    } else if (choice == 4) {
      const Expr literal = Literal(values, depth + 1);
      const Expr variable = MakeVar("f" + std::to_string(variables_++), literal->type());
      values.push_back(MakeCall(variable, {Pick(values)}).value());
      if (Below(2) == 0) values.push_back(MakeCall(variable, {Pick(values)}).value());
      return MakeLet(variable, literal, Block(std::move(values), steps - i, depth)).value();
    } else if (choice <= 6) {
      AddTuple(values);
    } else {
      AddOperator(values);
    }
  }
  if (depth > 0 || Below(3) > 0) return values.back();
  return MakeTuple({values.back(), Pick(values), MakeTuple({Pick(values), Pick(values)})});
}

Expr RandomProgram::Condition(const Expr& value) {
  return CallOf("greater", {CallOf("sum", {value}), MakeConstant(Tensor::Scalar(0.25, DType::kFloat32))});
}

Expr RandomProgram::Literal(const Values& values, size_t depth) {
  const Expr parameter = MakeVar("a" + std::to_string(variables_++), kType);
  Values inner = values;
  inner.push_back(parameter);
  return MakeFunction({parameter}, Block(std::move(inner), 1 + Below(3), depth)).value();
}

void RandomProgram::AddTuple(Values& values) {
  const Expr joined = Below(2) == 0 ? MakeTuple({Pick(values), Pick(values)}) : MakeTuple({Pick(values), Weight()});
  if (Below(3) == 0) {
    values.push_back(MakeTupleGetItem(joined, Below(2)).value());
    return;
  }
  const Expr wide = CallOf("concatenate", {joined}, {{"axis", AttributeValue(1)}});
  const Expr halves = CallOf("split", {wide}, {{"indices_or_sections", AttributeValue(2)}, {"axis", AttributeValue(1)}});
  values.push_back(MakeTupleGetItem(halves, 0).value());
  if (Below(2) == 0) values.push_back(MakeTupleGetItem(halves, 1).value());
}

void RandomProgram::AddOperator(Values& values) {
  static const std::vector<const char*> unary = {"nn.relu", "tanh", "sigmoid", "abs"};
  static const std::vector<const char*> binary = {"add", "multiply", "subtract", "maximum"};
  switch (Below(5)) {
    case 0:
      values.push_back(CallOf("multiply", {Pick(values), Weight()}));
      break;
    case 1:
      values.push_back(CallOf("add", {Pick(values), MakeConstant(Tensor::Scalar(0.5, DType::kFloat32))}));
      break;
    case 2:
      values.push_back(CallOf(unary[Below(unary.size())], {Pick(values)}));
      break;
    default:
      values.push_back(CallOf(binary[Below(binary.size())], {Pick(values), Pick(values)}));
  }
}

}  // namespace collage
