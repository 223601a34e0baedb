#include <algorithm>
#include <set>

#include "tests/backend/kernel_harness.h"
#include "tests/backend/xsmm/dice.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

using namespace testing_backend;  // NOLINT(google-build-using-namespace)
using xsmm::Dice;

const Backend& Xsmm() {
  static const Backend& backend = BackendNamed("xsmm");
  return backend;
}

struct Case {
  Expr function;
  std::vector<Tensor> inputs;
};

Expr Lengths(Dice& dice, int64_t batch, int64_t steps, std::vector<Expr>& parameters, std::vector<Tensor>& inputs) {
  Tensor lengths(TensorType{{batch}, DType::kInt32});
  const bool is_even = dice.Flip();
  for (int64_t row = 0; row < batch; ++row)
    lengths.MutableData<int32_t>()[row] = static_cast<int32_t>(is_even ? steps : dice.Roll(0, steps));
  if (dice.Flip()) return MakeConstant(lengths);
  parameters.push_back(MakeVar("lengths", lengths.type()));
  inputs.push_back(lengths);
  return parameters.back();
}

AttributeValue Names(Dice& dice, size_t count) {
  const std::vector<std::string> known = {"sigmoid", "tanh", "relu", "affine", "leakyrelu", "scaledtanh", "hardsigmoid"};
  std::vector<AttributeValue> names;
  for (size_t i = 0; i < count; ++i) names.emplace_back(known[static_cast<size_t>(dice.Roll(0, static_cast<int64_t>(known.size()) - 1))]);
  return names;
}

Case RandomCase(Dice& dice, const std::string& op, int64_t hidden) {
  const int64_t gates = op == "nn.lstm" ? 4 : op == "nn.gru" ? 3 : 1;
  const int64_t steps = dice.Roll(1, 6);
  const int64_t batch = dice.Roll(1, 8);
  const int64_t data = dice.Roll(1, 40);
  const std::string direction = std::vector<std::string>{"forward", "reverse", "bidirectional"}[static_cast<size_t>(dice.Roll(0, 2))];
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const auto seed = static_cast<uint64_t>(dice.Roll(0, 1000));
  const double range = 1.0 / std::sqrt(static_cast<double>(hidden));
  Case made;
  std::vector<Expr> parameters;
  const auto parameter = [&](const char* name, Shape shape) {
    parameters.push_back(MakeVar(name, TensorType{std::move(shape)}));
    made.inputs.emplace_back(*parameters.back()->type().AsTensor());
    FillRandom(made.inputs.back(), seed + parameters.size());
    return parameters.back();
  };
  const auto state = [&](const char* name) {
    const Shape shape{directions, batch, hidden};
    return dice.Flip() ? parameter(name, shape) : RandomConstant(shape, seed);
  };
  std::vector<Expr> arguments = {parameter("data", {steps, batch, data}), RandomConstant({directions, gates * hidden, data}, seed + 10),
                                 RandomConstant({directions, gates * hidden, hidden}, seed + 11, -range, range),
                                 RandomConstant({directions, 2 * gates * hidden}, seed + 12)};
  arguments.push_back(Lengths(dice, batch, steps, parameters, made.inputs));
  arguments.push_back(state("state"));
  Attributes attributes{{"direction", direction}};
  if (op == "nn.lstm") {
    arguments.push_back(state("cell"));
    const double peephole = dice.Flip() ? 1 : 0;
    arguments.push_back(RandomConstant({directions, 3 * hidden}, seed + 13, -peephole, peephole));
    if (dice.Flip()) attributes.Set("input_forget", true);
  }
  if (op == "nn.gru" && dice.Flip()) attributes.Set("linear_before_reset", true);
  const size_t functions = op == "nn.lstm" ? 3 : op == "nn.gru" ? 2 : 1;
  const bool has_functions = dice.Flip();
  if (has_functions) attributes.Set("activations", Names(dice, functions * static_cast<size_t>(directions)));
  // Gates that are larger than one let states grow without end.
  if (has_functions || dice.Flip()) attributes.Set("clip", 0.5);
  made.function = FunctionOf(parameters, CallOp(op, arguments, attributes));
  return made;
}

/// Every result of every variant, on one thread and on several, twice by the same kernel.
void Check(const Case& made) {
  const OpSequence sequence = *ToOpSequence(*made.function->As<Function>());
  const OpSequence::Step& step = sequence.steps[0];
  std::vector<Tensor> arguments;
  std::vector<Tensor> expected;
  for (const size_t input : step.inputs) {
    const auto parameter = std::find(sequence.parameters.begin(), sequence.parameters.end(), input);
    const std::optional<Tensor>& constant = sequence.values[input].constant;
    arguments.push_back(constant ? *constant : made.inputs[static_cast<size_t>(parameter - sequence.parameters.begin())]);
  }
  for (const size_t output : step.outputs) expected.emplace_back(sequence.values[output].type);
  step.op->reference(arguments, step.attributes, expected);
  for (const int threads : {1, 2, 3}) {
    const Function& function = *made.function->As<Function>();
    const std::vector<Variant> variants = Xsmm().Variants(function, Cpu(threads));
    ASSERT_EQ(variants.size(), 1U);
    Result<std::unique_ptr<Kernel>> kernel = Xsmm().Compile(function, Cpu(threads), variants[0]);
    ASSERT_TRUE(kernel) << kernel.error().message;
    std::vector<const void*> in;
    std::vector<void*> out;
    std::vector<Buffer> results;
    for (const Tensor& input : made.inputs) in.push_back(input.Bytes());
    for (const Tensor& tensor : expected) results.emplace_back(tensor.ByteCount());
    for (const Buffer& result : results) out.push_back(result.data());
    const Buffer workspace((*kernel)->workspace_bytes());
    for (int run = 0; run < 2; ++run) {
      ASSERT_TRUE((*kernel)->Run(in, out, workspace.data()));
      EXPECT_TRUE(workspace.TailIntact());
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(results[i].TailIntact());
        const auto wanted = expected[i].Values<float>();
        const auto* found = reinterpret_cast<const float*>(results[i].data());
        for (size_t e = 0; e < wanted.size(); ++e)
          ASSERT_NEAR(found[e], wanted[e], 2e-5 * std::max(1.0F, std::abs(wanted[e])))
              << "result " << i << ", element " << e << ", " << threads << " threads";
      }
    }
  }
}

class RecurrentTest : public testing::TestWithParam<const char*> {};

TEST_P(RecurrentTest, AnyLayerIsAsTheReferenceHasIt) {
  for (unsigned seed = 0; seed < Rounds(60); ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    Check(RandomCase(dice, GetParam(), dice.Roll(1, 70)));
    if (HasFatalFailure()) return;
  }
}

// So many units that threads share a direction.
TEST_P(RecurrentTest, ThreadsShareADirection) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    Check(RandomCase(dice, GetParam(), dice.Roll(520, 600)));
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, RecurrentTest, testing::Values("nn.rnn", "nn.gru", "nn.lstm"),
                         [](const auto& info) { return std::string(info.param).substr(3); });

TEST(RecurrentLayerTest, WhatNoLoopComputesIsDeclined) {
  const auto function = [](const std::string& activation, bool has_constant_weights) {
    const Expr x = Input({2, 1, 3});
    const Expr weight = has_constant_weights ? RandomConstant({1, 4, 3}, 1) : MakeVar("w", TensorType{{1, 4, 3}});
    Tensor lengths(TensorType{{1}, DType::kInt32});
    lengths.MutableData<int32_t>()[0] = 2;
    const Expr call = CallOp(
        "nn.rnn", {x, weight, RandomConstant({1, 4, 4}, 2), RandomConstant({1, 8}, 3), MakeConstant(lengths), RandomConstant({1, 1, 4}, 4)},
        {{"activations", std::vector<AttributeValue>{activation}}});
    return FunctionOf(has_constant_weights ? std::vector<Expr>{x} : std::vector<Expr>{x, weight}, call);
  };
  const auto variants = [](const Expr& of) { return Xsmm().Variants(*of->As<Function>(), Cpu(2)).size(); };
  EXPECT_EQ(variants(function("tanh", true)), 1U);
  EXPECT_EQ(variants(function("softsign", true)), 0U);
  EXPECT_EQ(variants(function("tanh", false)), 0U);
}

}  // namespace
}  // namespace collage
