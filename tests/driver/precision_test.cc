// Computing with fewer bits where the user permits it: a choice like any other, held to the declared tolerance.

#include "collage/tensor/precision.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>

#include "collage/explain/plan_names.h"
#include "collage/ir/permitted_precision.h"
#include "tests/driver/decided.h"

namespace collage {
namespace {

constexpr double kTolerated = 0.02;
constexpr const char* kShort = "fn (%x: Tensor[(1, 8), float32]) { nn.relu(%x) }";
/// What is off by a share stays off by it.
constexpr const char* kLong = "fn (%x: Tensor[(1, 8), float32]) { negative(abs(nn.relu(negative(%x)))) }";

/// Makes a kernel's results larger than they are.
class OffKernel : public Kernel {
 public:
  OffKernel(std::unique_ptr<Kernel> kernel, double share) : kernel_(std::move(kernel)), factor_(static_cast<float>(1 + share)) {
    inputs_ = kernel_->inputs();
    outputs_ = kernel_->outputs();
  }
  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    COLLAGE_TRY_STATUS(kernel_->Run(inputs, outputs, workspace));
    auto* values = static_cast<float*>(outputs[0]);
    std::for_each(values, values + outputs_[0].type.ElementCount(), [&](float& value) { value *= factor_; });
    return {};
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  float factor_;
};

/// Each operator by itself: exactly, or where that is permitted in half of the time and off by some share.
class Library : public Backend {
 public:
  explicit Library(double share, double seconds = 5e-4) : share_(share), seconds_(seconds) {}
  [[nodiscard]] std::string_view Name() const override { return "library"; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    for (const char* op : {"nn.relu", "negative", "abs"})
      rules.patterns.push_back({std::string("library.") + op, pattern::CallOf(op, {pattern::Wildcard()}), {}});
    return rules;
  }
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device&) const override {
    std::vector<Variant> variants = {{"exact", {Layout()}, {Layout()}}};
    if (const auto precision = PermittedPrecision(function)) variants.push_back({NameOf(*precision), {Layout()}, {Layout()}, true});
    return variants;
  }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    if (!variant.uses_precision) return CompileTimed(function, device, variant, [] { return 1e-3; });
    if (!PermittedPrecision(function)) return Fail("that is not permitted");
    ++compiled_;
    std::unique_ptr<Kernel> kernel = COLLAGE_TRY(CompileTimed(function, device, variant, [seconds = seconds_] { return seconds; }));
    return std::make_unique<OffKernel>(std::move(kernel), share_);
  }
  /// How often with that permit.
  [[nodiscard]] size_t compiled() const { return compiled_; }

 private:
  mutable std::atomic<size_t> compiled_ = 0;
  double share_;
  double seconds_;
};

/// The same operators in float32 alone, and faster so.
class Exact : public Library {
 public:
  Exact() : Library(0) {}
  [[nodiscard]] std::string_view Name() const override { return "other"; }
  [[nodiscard]] std::vector<Variant> Variants(const Function&, const Device&) const override { return {{"exact", {Layout()}, {Layout()}}}; }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    return CompileTimed(function, device, variant, [] { return 8e-4; });
  }
};

CompileOptions Permitting(double tolerance = kTolerated, DType stored = DType::kBFloat16) {
  CompileOptions options;
  options.precision = Precision{stored, tolerance};
  return options;
}

std::vector<MeasurementKey> KeysOf(const Decided& decided, bool uses_precision) {
  std::vector<MeasurementKey> keys;
  for (const PlacedKernel& kernel : decided.placement().kernels) {
    if (kernel.candidate != PlacedKernel::kNone && kernel.variant.uses_precision == uses_precision) keys.push_back(kernel.key);
  }
  return keys;
}

class PrecisionChoiceTest : public testing::Test {
 protected:
  size_t CountOf(Decided& decided, const std::string& variant) {
    const Result<Decision> decision = decided.Decide();
    EXPECT_TRUE(decision) << (decision ? "" : decision.error().message);
    return decision ? decided.Count(MakePlan(decided.placement(), "searched", decision->best), variant) : 0;
  }

  const SimulatedClock clock_;
  MeasurementCache cache_ = MeasurementCache::Open({}).value();
};

TEST_F(PrecisionChoiceTest, IsTakenWhereItIsPermittedAndFaster) {
  const Library library(0.01);
  Decided without(Parsed(kShort), {&library}, cache_);
  EXPECT_EQ(CountOf(without, "exact"), 1u);
  Decided with(Parsed(kShort), {&library}, cache_, Permitting());
  EXPECT_EQ(CountOf(with, "bf16"), 1u);
  const Library slow(0.01, 2e-3);
  Decided slower(Parsed(kShort), {&slow}, cache_, Permitting(0.03));
  EXPECT_EQ(CountOf(slower, "exact"), 1u);
}

TEST_F(PrecisionChoiceTest, KernelsOfFloat32KeepTheirKeysAndPrices) {
  const Library library(0.01);
  Decided without(Parsed(kLong), {&library}, cache_);
  ASSERT_TRUE(without.Decide());
  Decided with(Parsed(kLong), {&library}, cache_, Permitting());
  EXPECT_EQ(KeysOf(with, false), KeysOf(without, false));
  EXPECT_TRUE(KeysOf(without, true).empty());
  ASSERT_EQ(KeysOf(with, true).size(), KeysOf(with, false).size());
  for (const MeasurementKey& key : KeysOf(with, true)) {
    for (const MeasurementKey& other : KeysOf(with, false)) EXPECT_NE(key.function_hash, other.function_hash);
  }
  for (size_t kernel = 0; kernel < with.placement().kernels.size(); ++kernel) {
    const bool is_known = !with.evidence()[kernel].alone.empty();
    EXPECT_EQ(is_known, !with.placement().kernels[kernel].variant.uses_precision);
  }
  // The other way round nothing is left either.
  ASSERT_TRUE(with.Decide());
  Decided again(Parsed(kLong), {&library}, cache_);
  EXPECT_EQ(KeysOf(again, false), KeysOf(without, false));
  EXPECT_EQ(again.placement().DecisionHash(), without.placement().DecisionHash());
  EXPECT_NE(again.placement().DecisionHash(), with.placement().DecisionHash());
}

TEST_F(PrecisionChoiceTest, AnotherToleranceIsAnotherKernel) {
  const Library library(0.01);
  Decided one(Parsed(kShort), {&library}, cache_, Permitting(0.02));
  Decided other(Parsed(kShort), {&library}, cache_, Permitting(0.03));
  EXPECT_NE(KeysOf(one, true), KeysOf(other, true));
  EXPECT_EQ(KeysOf(one, false), KeysOf(other, false));
}

TEST_F(PrecisionChoiceTest, AnotherPermitIsAnotherKernelAndHeldToTheSame) {
  const Library library(0.4 * kTolerated);
  Decided one(Parsed(kLong), {&library}, cache_, Permitting());
  ASSERT_TRUE(one.Decide());
  Decided other(Parsed(kLong), {&library}, cache_, Permitting(kTolerated, DType::kInt8));
  EXPECT_NE(KeysOf(one, true), KeysOf(other, true));
  EXPECT_EQ(KeysOf(one, false), KeysOf(other, false));
  EXPECT_NE(one.placement().DecisionHash(), other.placement().DecisionHash());
  for (size_t kernel = 0; kernel < other.placement().kernels.size(); ++kernel)
    EXPECT_EQ(other.evidence()[kernel].alone.empty(), other.placement().kernels[kernel].variant.uses_precision);
  const size_t taken = CountOf(other, "int8-weights");
  EXPECT_GE(taken, 1u);
  EXPECT_LT(taken, 4u) << "some are withdrawn, since errors add up";
  EXPECT_LE(*other.Race(other.Plans().plans).value().timings.front().difference, kTolerated);
}

TEST_F(PrecisionChoiceTest, WhatDiffersByMoreThanTheToleranceIsRefused) {
  const Library library(2 * kTolerated);
  Decided decided(Parsed(kShort), {&library}, cache_, Permitting());
  EXPECT_EQ(CountOf(decided, "exact"), 1u);
  for (size_t kernel = 0; kernel < decided.placement().kernels.size(); ++kernel) {
    if (!decided.placement().kernels[kernel].variant.uses_precision) continue;
    EXPECT_NE(decided.evidence()[kernel].invalid_reason.find("differs from the reference"), std::string::npos);
  }
  EXPECT_EQ(library.compiled(), 2u) << "for its price and for a program, which is that kernel: there is nothing more to compare";
  // It is right where that much is permitted.
  Decided more(Parsed(kShort), {&library}, cache_, Permitting(3 * kTolerated));
  EXPECT_EQ(CountOf(more, "bf16"), 1u);
}

TEST_F(PrecisionChoiceTest, KernelsAreWithdrawnUntilTheWholeProgramIsWithinTheTolerance) {
  const Library library(0.4 * kTolerated);
  Decided decided(Parsed(kLong), {&library}, cache_, Permitting());
  const size_t taken = CountOf(decided, "bf16");
  EXPECT_GE(taken, 1u);
  EXPECT_LT(taken, 4u);
  const std::vector<Plan> plans = decided.Plans().plans;
  const RaceOutcome race = decided.Race(plans).value();
  ASSERT_TRUE(race.timings.front().difference);
  EXPECT_LE(*race.timings.front().difference, kTolerated);
  EXPECT_GT(*race.timings.front().difference, kTolerance);
  EXPECT_EQ(decided.Count(plans[race.winner], "bf16"), taken);

  // A later compile knows that from the beginning; and in another model, or alone, each is as good as it was.
  const Decided later(Parsed(kLong), {&library}, cache_, Permitting());
  size_t withdrawn = 0;
  for (const Evidence& evidence : later.evidence()) withdrawn += evidence.invalid_reason.empty() ? 0 : 1;
  EXPECT_GE(withdrawn, 1u);
  Decided other(Parsed(kShort), {&library}, cache_, Permitting());
  EXPECT_EQ(CountOf(other, "bf16"), 1u);
}

TEST_F(PrecisionChoiceTest, ThePlanInFloat32RacesBesideTheChosenOne) {
  const Library library(0.01);
  Decided decided(Parsed(kShort), {&library}, cache_, Permitting());
  ASSERT_TRUE(decided.Decide());
  const std::vector<Plan> plans = decided.Plans().plans;
  const auto in_float32 = std::find_if(plans.begin(), plans.end(), [](const Plan& plan) { return plan.name == kInFloat32; });
  ASSERT_NE(in_float32, plans.end());
  EXPECT_FALSE(UsesPrecision(decided.placement(), in_float32->result.choices));
  const RaceOutcome race = decided.Race(plans).value();
  EXPECT_EQ(decided.Count(plans[race.winner], "bf16"), 1u);
  const auto timing = std::find_if(race.timings.begin(), race.timings.end(), [](const PlanTiming& one) { return one.name == kInFloat32; });
  ASSERT_NE(timing, race.timings.end());
  EXPECT_NEAR(timing->ratio, 2, 0.1);
}

TEST_F(PrecisionChoiceTest, ThePlanInFloat32MayBeThatOfASingleBackend) {
  const Library library(0.01);
  const Exact exact;
  Decided decided(Parsed(kShort), {&library, &exact}, cache_, Permitting());
  ASSERT_TRUE(decided.Decide());
  const std::vector<Plan> plans = decided.Plans().plans;
  const RaceOutcome race = decided.Race(plans).value();
  std::vector<std::string> names;
  for (const PlanTiming& timing : race.timings) {
    if (timing.ratio > 1.5) names.push_back(timing.name);
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre(kInFloat32, "other"));
}

TEST_F(PrecisionChoiceTest, ThePlanSaysWhichPartitionsUseIt) {
  const Library library(0.01);
  Decided decided(Parsed(kShort), {&library}, cache_, Permitting());
  ASSERT_TRUE(decided.Decide());
  const Plan plan = decided.Plans().plans.front();
  EXPECT_EQ(decided.Report(plan).plan.at(0).precision, "bf16");
  const LoweredModel lowered = Lower(Apply(decided.placement(), plan).value(), decided.lower()).value();
  const Expr& function = lowered.program.calls.at(0).function;
  EXPECT_EQ(PermittedPrecision(*function->As<Function>()), Permitting().precision);
}

}  // namespace
}  // namespace collage
