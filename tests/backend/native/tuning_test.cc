#include "collage/backend/tuning.h"

#include <gtest/gtest.h>

#include <random>

#include "collage/backend/registry.h"
#include "collage/measure/verification.h"
#include "tests/backend/native/native_harness.h"

namespace collage {
namespace {

using namespace collage::testing;  // NOLINT(google-build-using-namespace)

const Device kDevice{DeviceKind::kCpu, 0, 2};

const Backend& Native() { return **FindBackend("native", kDevice); }

Expr FunctionOf(const Expr& parameter, const Expr& body) { return *MakeFunction({parameter}, body); }

/// Sizes that no tile divides, so that tails are met.
std::vector<std::pair<std::string, Expr>> Functions() {
  const Expr image = Parameter("x", {1, 13, 11, 17});
  const Expr matrix = Parameter("x", {23, 37});
  const Expr rows = Parameter("x", {61, 203});
  return {
      {"relu", FunctionOf(rows, CallNamed("nn.relu", {CallNamed("tanh", {rows})}))},
      {"softmax", FunctionOf(rows, CallNamed("nn.softmax", {rows}))},
      {"dense", FunctionOf(matrix, CallNamed("nn.relu", {CallNamed("nn.dense", {matrix, RandomConstant({41, 37}, 2)})}))},
      {"conv2d", FunctionOf(image, CallNamed("nn.relu", {CallNamed("nn.conv2d", {image, RandomConstant({18, 13, 3, 3}, 3)})}))},
      {"pointwise conv2d", FunctionOf(image, CallNamed("nn.conv2d", {image, RandomConstant({19, 13, 1, 1}, 4)}))},
  };
}

TEST(NativeTuning, EveryValueAndRandomCombinationsAgreeWithTheReference) {
  std::mt19937_64 random(3);
  for (const auto& [name, expr] : Functions()) {
    const Function& function = *expr->As<Function>();
    const Variant base = Native().Variants(function, kDevice).at(0);
    const std::vector<TuningParameter> parameters = Native().Tuning(function, kDevice, base);
    ASSERT_GE(parameters.size(), 3u) << name;
    std::vector<TuningChoice> choices;
    for (size_t p = 0; p < parameters.size(); ++p) {
      for (size_t v = 1; v < parameters[p].values.size(); ++v) {
        choices.emplace_back(parameters.size(), 0);
        choices.back()[p] = v;
      }
    }
    for (int i = 0; i < 6; ++i) {
      choices.emplace_back();
      for (const TuningParameter& parameter : parameters) choices.back().push_back(random() % parameter.values.size());
    }
    for (const TuningChoice& choice : choices) {
      const std::string tuned = TunedVariant(base, parameters, choice).name;
      const Result<Variant> variant = FindVariant(Native(), function, kDevice, tuned);
      ASSERT_TRUE(variant.has_value()) << tuned;
      const Result<std::unique_ptr<Kernel>> kernel = Native().Compile(function, kDevice, *variant);
      ASSERT_TRUE(kernel.has_value()) << name << " " << tuned << ": " << kernel.error().message;
      const Result<double> difference = DifferenceFromReference(**kernel, expr, 5);
      ASSERT_TRUE(difference.has_value()) << name << " " << tuned;
      EXPECT_LT(*difference, kTolerance) << name << " " << tuned;
    }
  }
}

TEST(NativeTuning, ASerialScheduleHasNoTasks) {
  const auto functions = Functions();
  const Function& function = *functions[0].second->As<Function>();
  for (const TuningParameter& parameter : Native().Tuning(function, kDevice, {"serial", {Layout()}, {Layout()}}))
    EXPECT_NE(parameter.name, "tasks");
}

}  // namespace
}  // namespace collage
