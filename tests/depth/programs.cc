#include "tests/depth/programs.h"

#include <pthread.h>

#include "collage/op/table.h"
#include "collage/support/check.h"

namespace collage {
namespace {

const Type kVector = TensorType{{2}, DType::kFloat32};

Expr CallOf(const char* op, std::vector<Expr> args) { return MakeCall(Operators().Find(op), std::move(args)).value(); }
const char* OperatorAt(size_t i) { return i % 3 == 0 ? "nn.relu" : i % 3 == 1 ? "tanh" : "abs"; }

Expr Chain(size_t operators) {
  const Expr x = MakeVar("x", kVector);
  Expr value = x;
  for (size_t i = 0; i < operators; ++i) value = CallOf(OperatorAt(i), {value});
  return MakeFunction({x}, value).value();
}

Expr ResidualBlocks(size_t operators) {
  const Expr x = MakeVar("x", kVector);
  Expr value = x;
  for (size_t i = 0; i < operators / 4; ++i) {
    value = CallOf("add", {CallOf("nn.relu", {CallOf("tanh", {CallOf("abs", {value})})}), value});
  }
  return MakeFunction({x}, value).value();
}

/// The body of each let is the next one.
Expr Lets(size_t operators) {
  const Expr x = MakeVar("x", kVector);
  std::vector<Expr> variables = {x};
  std::vector<Expr> values;
  for (size_t i = 0; i < operators; ++i) {
    values.push_back(CallOf(OperatorAt(i), {variables.back()}));
    variables.push_back(MakeVar("v", kVector));
  }
  Expr body = variables.back();
  for (size_t i = operators; i-- > 0;) body = MakeLet(variables[i + 1], values[i], body).value();
  return MakeFunction({x}, body).value();
}

/// The value of each let is the let before.
Expr LetsInLets(size_t operators) {
  const Expr x = MakeVar("x", kVector);
  Expr value = x;
  for (size_t i = 0; i < operators; ++i) {
    const Expr variable = MakeVar("v", kVector);
    value = MakeLet(variable, value, CallOf(OperatorAt(i), {variable})).value();
  }
  return MakeFunction({x}, value).value();
}

/// Each literal calls the one before, in whose body that stands.
Expr Literals(size_t operators) {
  const Expr x = MakeVar("x", kVector);
  Expr literal;
  for (size_t i = 0; i < operators; ++i) {
    const Expr parameter = MakeVar("p", kVector);
    const Expr value = literal ? MakeCall(literal, {parameter}).value() : parameter;
    literal = MakeFunction({parameter}, CallOf(OperatorAt(i), {value})).value();
  }
  return MakeFunction({x}, MakeCall(literal, {x}).value()).value();
}

Expr Ifs(size_t operators) {
  const Expr x = MakeVar("x", kVector);
  const Expr condition = MakeVar("c", TensorType{{}, DType::kBool});
  Expr value = x;
  for (size_t i = 0; i < operators; ++i) value = MakeIf(condition, CallOf(OperatorAt(i), {value}), x).value();
  return MakeFunction({condition, x}, value).value();
}

void* Run(void* body) {
  (*static_cast<const std::function<void()>*>(body))();
  return nullptr;
}

}  // namespace

std::vector<DeepProgram> DeepPrograms() {
  constexpr size_t kFewer = 20'000;
  return {{"Chain", 100'000, Chain},
          {"ResidualBlocks", kFewer, ResidualBlocks},
          {"Lets", kFewer, Lets},
          {"LetsInLets", kFewer, LetsInLets, true, false},
          {"Literals", kFewer, Literals, true, false},
          {"Ifs", kFewer, Ifs, false, false}};
}

void OnSmallStack(size_t operators, const std::function<void()>& body) {
  pthread_attr_t attributes;
  COLLAGE_CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, (operators * 10 + 4095) / 4096 * 4096) == 0);
  pthread_t thread;
  COLLAGE_CHECK(pthread_create(&thread, &attributes, Run, const_cast<std::function<void()>*>(&body)) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

}  // namespace collage
