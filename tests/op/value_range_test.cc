// Interval arithmetic against the reference kernels: what they give must lie where the intervals say.

#include "collage/op/value_range.h"

#include <gtest/gtest.h>

#include <random>

#include "collage/ir/parse.h"
#include "collage/op/interpreter.h"
#include "collage/op/table.h"

namespace collage {
namespace {

class ValueRangeTest : public testing::TestWithParam<const char*> {};

TEST_P(ValueRangeTest, HoldsWhatTheReferenceGives) {
  const std::string type = "Tensor[(2, 4, 6), float32]";
  const Expr function =
      ParseExpr("fn (%x: " + type + ", %y: " + type + ", %v: Tensor[(4), float32]) { " + GetParam() + " }", Operators()).value().expr;
  const OpSequence sequence = ToOpSequence(*function->As<Function>()).value();
  std::mt19937 random(1);
  std::uniform_real_distribution<double> end(-3, 3);
  int bounded = 0;
  for (uint64_t round = 0; round < 200; ++round) {
    std::vector<ValueRange> ranges(sequence.values.size());
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (sequence.values[i].constant) ranges[i] = RangeOf(*sequence.values[i].constant);
    }
    std::vector<Tensor> inputs;
    for (const size_t parameter : sequence.parameters) {
      const auto [low, high] = std::minmax({end(random), end(random)});
      ranges[parameter] = {low, high};
      FillRandom(inputs.emplace_back(sequence.values[parameter].type), round * 10 + inputs.size(), low, high);
    }
    for (const OpSequence::Step& step : sequence.steps) {
      std::vector<ValueRange> given;
      for (const size_t input : step.inputs) given.push_back(ranges[input]);
      const std::vector<ValueRange> results = ResultRanges(step, given);
      for (size_t i = 0; i < results.size(); ++i) ranges[step.outputs[i]] = results[i];
    }
    const ValueRange& range = ranges[sequence.results[0]];
    if (!range.IsBounded()) continue;
    ++bounded;
    const double slack = 1e-5 * (1 + range.Magnitude());  // float32
    for (const double value : InterpretFunction(function, inputs)->at(0).ToDouble()) {
      EXPECT_TRUE(value >= range.low - slack && value <= range.high + slack) << value << " in [" << range.low << ", " << range.high << "]";
    }
  }
  EXPECT_GT(bounded, 5) << "nothing was compared";
}

INSTANTIATE_TEST_SUITE_P(Operators, ValueRangeTest,
                         testing::Values("nn.relu(%x)", "nn.leaky_relu(%x, alpha=0.3f)", "nn.leaky_relu(%x, alpha=-2f)",
                                         "clip(%x, a_min=-0.5f, a_max=1f)", "negative(%x)", "abs(%x)", "exp(%x)", "ceil(%x)", "floor(%x)",
                                         "round(%x)", "log(%x)", "sqrt(%x)", "rsqrt(%x)", "sigmoid(%x)", "tanh(%x)", "erf(%x)", "sin(%x)",
                                         "cos(%x)", "sign(%x)", "nn.softmax(%x)", "nn.log_softmax(%x)", "add(%x, %y)", "subtract(%x, %y)",
                                         "multiply(%x, %y)", "multiply(%x, %x)", "divide(%x, %y)", "floor_mod(%x, %y)", "power(%x, %y)",
                                         "power(%x, 2f)", "power(%x, 3f)", "power(%x, 0.5f)", "power(%x, -1f)", "maximum(%x, %y)",
                                         "minimum(%x, %y)", "nn.prelu(%x, %v)", "nn.bias_add(%x, %v)", "where(less(%x, %y), %x, %y)",
                                         "sum(%x, axis=[1])", "prod(%x, axis=[2])", "mean(%x)", "max(%x)", "argmax(%x, axis=[0])",
                                         "nn.batch_matmul(%x, %y)", "nn.layer_norm(%x, max(%x, axis=[0, 1]), min(%y, axis=[0, 1]))",
                                         "nn.instance_norm(%x, %v, %v)", "nn.group_norm(%x, %v, %v, num_groups=2)",
                                         "nn.batch_norm(%x, %v, %v, %v, abs(%v)).0", "nn.lrn(%x, size=3)", "concatenate((%x, %y), axis=1)",
                                         "nn.pad(%x, 9f, pad_width=[[0, 0], [1, 1], [0, 0]])", "cast(%x, dtype=\"int8\")", "zeros_like(%x)",
                                         "nn.col2im(%x, output_size=[3, 4], kernel_size=[2, 2])"));

}  // namespace
}  // namespace collage
