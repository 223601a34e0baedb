#include "tests/dataflow/evaluate.h"

#include <gtest/gtest.h>

#include <random>

#include "collage/ir/parse.h"
#include "collage/op/interpreter.h"
#include "collage/op/table.h"

namespace collage {

std::vector<Tensor> Evaluate(const Expr& function, const std::vector<Tensor>& inputs) {
  Result<std::vector<Tensor>> results = InterpretFunction(function, inputs);
  if (results) return *results;
  ADD_FAILURE() << results.error().message;
  return {};
}

std::vector<Tensor> RandomInputs(const Expr& function, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const Expr& parameter : function->As<Function>()->parameters) {
    for (const TensorType& type : FlattenTensors(parameter->type())) {
      inputs.emplace_back(type);
      FillRandom(inputs.back(), seed + inputs.size());
    }
  }
  return inputs;
}

void ExpectSameResults(const Expr& actual, const Expr& expected, uint64_t seed) {
  const std::vector<Tensor> inputs = RandomInputs(expected, seed);
  const std::vector<Tensor> a = Evaluate(actual, inputs);
  const std::vector<Tensor> e = Evaluate(expected, inputs);
  ASSERT_EQ(a.size(), e.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(BitwiseEqual(a[i], e[i])) << "result " << i << ", seed " << seed;
}

Expr ParseFunction(const std::string& text, std::unordered_map<std::string, Expr>* names) {
  ParseOptions options;
  options.missing_constant = RandomConstants(7);
  Result<ParsedModule> parsed = ParseModule(text, Operators(), options);
  if (!parsed) {
    ADD_FAILURE() << parsed.error().message;
    return nullptr;
  }
  if (names) *names = parsed->names.at("main");
  return parsed->module.MainExpr();
}

Expr RandomFunction(uint64_t seed, size_t operators) {
  std::mt19937_64 random(seed);
  const auto pick = [&](size_t count) { return static_cast<size_t>(random() % count); };
  const auto call = [](const char* op, std::vector<Expr> args, Attributes attributes = {}) {
    return MakeCall(Operators().Find(op), std::move(args), std::move(attributes)).value();
  };
  const Type type = TensorType{{2, 4}, DType::kFloat32};
  const Type pair = TupleType{{type, type}};
  std::vector<Expr> parameters = {MakeVar("x", type), MakeVar("y", type), MakeVar("pair", pair)};
  std::vector<Expr> values = {parameters[0], parameters[1], MakeTupleGetItem(parameters[2], 1).value()};
  std::vector<Expr> tuples = {parameters[2]};
  for (size_t i = 0; i < operators; ++i) {
    // Recent values are preferred, so that chains form as well as bushes.
    const auto value = [&] {
      return values[pick(2) == 0 ? values.size() - 1 - pick(std::min<size_t>(values.size(), 3)) : pick(values.size())];
    };
    switch (pick(8)) {
      case 0:
        values.push_back(call("nn.relu", {value()}));
        break;
      case 1:
        values.push_back(call("tanh", {value()}));
        break;
      case 2: {
        const Expr wide = call("concatenate", {pick(2) == 0 ? MakeTuple({value(), value()}) : tuples[pick(tuples.size())]},
                               {{"axis", AttributeValue(1)}});
        tuples.push_back(call("split", {wide}, {{"indices_or_sections", AttributeValue(2)}, {"axis", AttributeValue(1)}}));
        values.push_back(MakeTupleGetItem(tuples.back(), pick(2)).value());
        break;
      }
      case 3: {
        Tensor constant(*type.AsTensor());
        FillRandom(constant, random());
        values.push_back(call("multiply", {value(), MakeConstant(constant)}));
        break;
      }
      case 4:
        values.push_back(call("add", {value(), MakeConstant(Tensor::Scalar(0.5, DType::kFloat32))}));
        break;
      case 5:
        values.push_back(call("subtract", {value(), value()}));
        break;
      case 6:
        tuples.push_back(MakeTuple({value(), value()}));
        values.push_back(MakeTupleGetItem(tuples[pick(tuples.size())], pick(2)).value());
        break;
      default:
        values.push_back(call("add", {value(), value()}));
    }
  }
  const Expr last = values.back();
  Expr body = pick(3) == 0 ? MakeTuple({last, values[pick(values.size())], tuples.back()}) : last;
  return MakeFunction(std::move(parameters), std::move(body)).value();
}

}  // namespace collage
