#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "collage/cache/cache_maintenance.h"
#include "collage/ir/op_sequence.h"
#include "tests/driver/decided.h"

namespace collage {
namespace {

/// The number of the kernel that ran last in this process, whichever executable it belongs to.
int ran_last = 0;

/// Its kernels are fast right after themselves and slow after any other, as those that owe their speed to caches which only they have
/// filled; or always the same, between the two.
class MoodyBackend : public Backend {
 public:
  explicit MoodyBackend(std::string fast = "flattering") : fast_(std::move(fast)) {}
  [[nodiscard]] std::string_view Name() const override { return "moody"; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    for (const char* op : {"nn.relu", "sigmoid", "tanh"}) {
      rules.patterns.push_back({std::string("moody.") + op, pattern::CallOf(op, {pattern::Wildcard()}), {}});
    }
    return rules;
  }
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device&) const override {
    // Nothing else, in particular no kernel by which transitions are measured: that would find the moods.
    if (function.body->type().AsTensor()->shape != Shape{1, 8}) return {};
    return {{fast_, {Layout()}, {Layout()}}, {"steady", {Layout()}, {Layout()}}};
  }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    return CompileTimed(function, device, variant, [number = ++kernels_, seconds = SecondsOf(function, variant)] {
      return seconds(/*is_again=*/std::exchange(ran_last, number) == number);
    });
  }

 protected:
  /// What a run of a kernel takes, by whether the same kernel ran last.
  using Seconds = std::function<double(bool is_again)>;
  [[nodiscard]] virtual Seconds SecondsOf(const Function&, const Variant& variant) const {
    return [flatters = variant.name == "flattering"](bool is_again) { return flatters ? (is_again ? 200e-6 : 4000e-6) : 1500e-6; };
  }
  /// The number of the last kernel that was made.
  [[nodiscard]] static int kernels() { return kernels_; }

 private:
  static inline int kernels_ = 0;
  std::string fast_;
};

constexpr const char* kProgram = "fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); %1 = sigmoid(%0); %2 = nn.relu(%1); tanh(%2) }";

class DecisionTest : public testing::Test {
 protected:
  Decided Start(const Backend& backend) { return Decided(Parsed(kProgram), {&backend}, cache_, options_); }

  SimulatedClock clock_;
  MoodyBackend backend_;
  CompileOptions options_;
  MeasurementCache cache_ = MeasurementCache::Open({}).value();
};

TEST_F(DecisionTest, WhatFlattersAloneIsNotChosenForTheNetwork) {
  Decided decided = Start(backend_);
  const Decision decision = decided.Decide().value();
  EXPECT_TRUE(decision.is_settled);
  const Plan plan = decided.Plans().plans.front();
  EXPECT_EQ(decided.Count(plan, "steady"), 4u);
  EXPECT_NEAR(plan.result.cost.ToSeconds(), 4 * 1.5e-3, 1e-4);
  const Bounds bounds = BoundsOf(decided.placement().arms, decided.Prices(), decided.placement().Competing(), decision).value();
  EXPECT_LE(bounds.proved, bounds.likely);
  EXPECT_LE(bounds.open, decision.open);
  const Status checked = ForEachEntry(cache_, [](const CacheEntry&) { return Status(); });
  EXPECT_TRUE(checked) << checked.error().message;
}

TEST_F(DecisionTest, WhatWasFoundIsFoundAgainAndNothingIsMeasured) {
  Decided first = Start(backend_);
  ASSERT_TRUE(first.Decide());
  const Plan plan = first.Plans().plans.front();

  Decided second = Start(backend_);
  const Plan known = second.Plans().plans.front();
  EXPECT_EQ(known.result.cost, plan.result.cost);
  EXPECT_EQ(known.result.choices, plan.result.choices);
  EXPECT_EQ(second.pricer().counts().measured, 0u);
}

/// One variant is much slower in company for one operator only, another one for all; alone both beat what is always the same. Alone they
/// differ so much that none is timed beside another.
class UnevenBackend : public MoodyBackend {
 public:
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device&) const override {
    if (function.body->type().AsTensor()->shape != Shape{1, 8}) return {};
    return {{"uneven", {Layout()}, {Layout()}}, {"shy", {Layout()}, {Layout()}}, {"steady", {Layout()}, {Layout()}}};
  }

 protected:
  [[nodiscard]] Seconds SecondsOf(const Function& function, const Variant& variant) const override {
    const bool is_relu = ToOpSequence(function).value().steps.front().op->name == "nn.relu";
    const std::pair<double, double> times = variant.name == "steady" ? std::pair(1500e-6, 1500e-6)  // alone, in company
                                            : variant.name == "shy"  ? std::pair(800e-6, 3000e-6)
                                            : is_relu                ? std::pair(500e-6, 2000e-6)
                                                                     : std::pair(1200e-6, 1250e-6);
    return [times](bool is_again) { return is_again ? times.first : times.second; };
  }
};

TEST_F(DecisionTest, WhatOneKernelIsLikeInCompanyIsNotTakenForGrantedOfOthers) {
  const UnevenBackend backend;
  Decided decided = Start(backend);
  ASSERT_TRUE(decided.Decide());
  const Plan plan = decided.Plans().plans.front();
  EXPECT_EQ(decided.Count(plan, "steady"), 2u) << "for nn.relu";
  EXPECT_EQ(decided.Count(plan, "uneven"), 2u) << "for sigmoid and tanh, of which only nn.relu's ratio was known";
}

TEST_F(DecisionTest, WithoutTimeThePlanIsOfWhatCouldBeMeasured) {
  options_.budget_seconds = 0;
  Decided decided = Start(backend_);
  const Decision decision = decided.Decide().value();
  EXPECT_FALSE(decision.is_settled);
  EXPECT_GT(decision.open, 0.01);
  EXPECT_EQ(decided.Plans().plans.front().result.choices, decision.best.choices);
}

/// Two activations at once take a little more than one after the other.
class PairingBackend : public MoodyBackend {
 public:
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules = MoodyBackend::Rules();
    rules.patterns.push_back({"moody.pair", pattern::CallOf("sigmoid", {pattern::CallOf("nn.relu", {pattern::Wildcard()})}), {}});
    return rules;
  }

 protected:
  [[nodiscard]] Seconds SecondsOf(const Function& function, const Variant&) const override {
    const bool is_pair = ToOpSequence(function).value().steps.size() == 2;
    return [seconds = is_pair ? 10.1e-3 : 5e-3](bool) { return seconds; };
  }
};

TEST_F(DecisionTest, OfPlansThatCannotBeToldApartThatOfFewerPartitionsIsTaken) {
  const PairingBackend backend;
  options_.declared.smallest_difference = 0.015;
  Decided decided = Start(backend);
  ASSERT_TRUE(decided.Decide());
  const std::vector<Plan> plans = decided.Plans().plans;
  EXPECT_EQ(plans.front().result.partitions, 3u);
  EXPECT_EQ(plans.back().name, "cheapest");
  EXPECT_EQ(plans.back().result.partitions, 4u);
  EXPECT_GT(plans.front().result.cost, plans.back().result.cost);
  EXPECT_LT(plans.front().result.cost.ToSeconds(), 1.015 * plans.back().result.cost.ToSeconds());
}

/// Its fast kernels are so much faster than the others that these are never tried inside a plan.
class SparingBackend : public MoodyBackend {
 public:
  SparingBackend() : MoodyBackend("usual") {}

 protected:
  [[nodiscard]] Seconds SecondsOf(const Function&, const Variant& variant) const override {
    return [seconds = variant.name == "usual" ? 1e-3 : 50e-3](bool) { return seconds; };
  }
};

TEST_F(DecisionTest, WhatCrashedLaterIsReplaced) {
  const SparingBackend backend;
  Decided first = Start(backend);
  ASSERT_TRUE(first.Decide());
  const Plan plan = first.Plans().plans.front();
  ASSERT_EQ(first.Count(plan, "usual"), 4u);
  // As the supervisor does when a kernel crashes in the race.
  ASSERT_TRUE(cache_.Store(first.placement().kernels[plan.kernels.back().kernel].key, {{}, "crashed inside a whole plan"}));

  Decided second = Start(backend);
  ASSERT_TRUE(second.Decide());
  EXPECT_EQ(second.Count(second.Plans().plans.front(), "usual"), 3u);
  EXPECT_EQ(second.Count(second.Plans().plans.front(), "steady"), 1u);
}

/// Its fast kernels are right alone, and fail in the company of others once they have run there so often.
class UnsociableBackend : public MoodyBackend {
 public:
  UnsociableBackend(int good_runs, bool throws) : MoodyBackend("unsociable"), good_runs_(good_runs), throws_(throws) {}
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    std::unique_ptr<Kernel> kernel = COLLAGE_TRY(MoodyBackend::Compile(function, device, variant));
    if (variant.name == "steady") return kernel;
    return std::make_unique<FailingKernel>(std::move(kernel), kernels(), good_runs_, throws_);
  }

 protected:
  [[nodiscard]] Seconds SecondsOf(const Function&, const Variant& variant) const override {
    return [seconds = variant.name == "steady" ? 1500e-6 : 500e-6](bool) { return seconds; };
  }

 private:
  class FailingKernel : public Kernel {
   public:
    FailingKernel(std::unique_ptr<Kernel> kernel, int number, int good_runs, bool throws)
        : kernel_(std::move(kernel)), number_(number), good_runs_(good_runs), throws_(throws) {
      inputs_ = kernel_->inputs();
      outputs_ = kernel_->outputs();
    }
    Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
      if (ran_last != 0 && ran_last != number_ && --good_runs_ < 0) {
        if (throws_) throw std::runtime_error("too many people");
        return Fail("too many people");
      }
      return kernel_->Run(inputs, outputs, workspace);
    }

   private:
    std::unique_ptr<Kernel> kernel_;
    int number_;
    int good_runs_;
    bool throws_;
  };

  int good_runs_;
  bool throws_;
};

class UnsociableTest : public DecisionTest, public testing::WithParamInterface<std::tuple<int, bool>> {};

TEST_P(UnsociableTest, WhatFailsInsideAPlanIsInvalidAndTheDecisionGoesOn) {
  const UnsociableBackend backend(std::get<0>(GetParam()), std::get<1>(GetParam()));
  Decided decided = Start(backend);
  ran_last = 0;
  const Result<Decision> decision = decided.Decide();
  ASSERT_TRUE(decision) << decision.error().message;
  std::vector<MeasurementKey> refused;
  ASSERT_TRUE(ForEachEntry(cache_, [&](const CacheEntry& entry) {
    if (entry.key.variant != "unsociable" || entry.measurement.invalid_reason.empty()) return Status();
    EXPECT_THAT(entry.measurement.invalid_reason, testing::HasSubstr("inside a whole plan"));
    EXPECT_THAT(entry.measurement.invalid_reason, testing::HasSubstr("too many people"));
    refused.push_back(entry.key);
    return Status();
  }));
  EXPECT_GE(refused.size(), 1u);
  const Plan plan = decided.Plans().plans.front();
  for (const PlanKernel& kernel : plan.kernels)
    EXPECT_THAT(refused, testing::Not(testing::Contains(decided.placement().kernels[kernel.kernel].key)));
}

INSTANTIATE_TEST_SUITE_P(SoonAndLate, UnsociableTest, testing::Combine(testing::Values(5, 60, 300), testing::Bool()), [](const auto& info) {
  return std::string(std::get<1>(info.param) ? "Throws" : "Fails") + "After" + std::to_string(std::get<0>(info.param));
});

}  // namespace
}  // namespace collage
