#include "collage/driver/context_pricing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "collage/cost/cache_maintenance.h"
#include "collage/ir/op_sequence.h"
#include "collage/ir/parse.h"
#include "collage/op/table.h"
#include "tests/driver/timed_kernel.h"

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

class ContextPricingTest : public testing::Test {
 protected:
  Result<Placement> Place(Pricer& pricer) { return Place(pricer, backend_); }
  Result<Placement> Place(Pricer& pricer, const Backend& backend) {
    return Placement::Create(ParseExpr(kProgram, Operators()).value().expr,
                             {{{&backend, "1", BackendRules::Style::kPattern}, backend.Rules(), "cpu -compiler=moody"}}, pricer,
                             options_.progress);
  }
  LowerOptions Lowering() const { return Lowering(backend_); }
  static LowerOptions Lowering(const Backend& backend) {
    LowerOptions lower;
    lower.find_backend = [&backend](const std::string&) -> Result<const Backend*> { return &backend; };
    return lower;
  }
  static size_t Count(const Placement& placement, const Plan& plan, const std::string& variant) {
    const CompileReport report = placement.Report(plan).value();
    return static_cast<size_t>(
        std::count_if(report.plan.begin(), report.plan.end(), [&](const PlanEntry& entry) { return entry.variant == variant; }));
  }

  SimulatedClock clock_;
  MoodyBackend backend_;
  CompileOptions options_;
  MeasurementCache cache_ = MeasurementCache::Open({}).value();
};

TEST_F(ContextPricingTest, WhatIsKeptIsInOrder) {
  Pricer pricer({}, cache_, {});
  Placement placement = Place(pricer).value();
  ASSERT_TRUE(PriceInContext(placement, Lowering(), options_, /*noise_floor=*/0));
  const Status checked = ForEachEntry(cache_, [](const CacheEntry&) { return Status(); });
  EXPECT_TRUE(checked) << checked.error().message;
  EXPECT_EQ(placement.FindContextPricing().value()->noise_floor, 0);
}

TEST_F(ContextPricingTest, WhatFlattersAloneIsNotChosenForTheNetwork) {
  Pricer pricer({}, cache_, {});
  Placement placement = Place(pricer).value();
  const Plan alone = placement.Search().value();
  EXPECT_EQ(Count(placement, alone, "flattering"), 4u);
  EXPECT_EQ(placement.RoundsInContext(alone), 0u);
  const Plan plan = PriceInContext(placement, Lowering(), options_).value().plans.front();
  EXPECT_EQ(Count(placement, plan, "steady"), 4u);
  EXPECT_NEAR(plan.result.cost.ToSeconds(), 4 * 1.5e-3, 1e-4);
  EXPECT_GE(placement.RoundsInContext(plan), 3u);
}

TEST_F(ContextPricingTest, PricesInContextAreFoundAgain) {
  Pricer first({}, cache_, {});
  Placement placement = Place(first).value();
  const Plan plan = PriceInContext(placement, Lowering(), options_).value().plans.front();

  Pricer second({}, cache_, {});
  Placement again = Place(second).value();
  const Plan known = PriceInContext(again, Lowering(), options_).value().plans.front();
  EXPECT_EQ(known.result.cost, plan.result.cost);
  EXPECT_EQ(known.result.choices, plan.result.choices);
  EXPECT_GE(again.RoundsInContext(known), 3u);
  EXPECT_EQ(second.counts().measured, 0u);
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

TEST_F(ContextPricingTest, WhatOneKernelIsLikeInCompanyIsNotTakenForGrantedOfOthers) {
  const UnevenBackend backend;
  Pricer pricer({}, cache_, {});
  Placement placement = Place(pricer, backend).value();
  const Plan plan = PriceInContext(placement, Lowering(backend), options_).value().plans.front();
  EXPECT_EQ(Count(placement, plan, "steady"), 2u) << "for nn.relu";
  EXPECT_EQ(Count(placement, plan, "uneven"), 2u) << "for sigmoid and tanh, of which only nn.relu's factor was known";
}

/// The faster variant is priced alone while something else uses the processors most of the time.
class DisturbedBackend : public MoodyBackend {
 public:
  DisturbedBackend() : MoodyBackend("disturbed") {}

 protected:
  [[nodiscard]] Seconds SecondsOf(const Function&, const Variant& variant) const override {
    const bool is_steady = variant.name == "steady";
    return [is_steady, run = 0](bool is_again) mutable { return is_steady ? 2e-3 : is_again && ++run % 3 != 0 ? 9e-3 : 1e-3; };
  }
};

TEST_F(ContextPricingTest, WhatWasPricedWhileDisturbedIsTriedAllTheSame) {
  const DisturbedBackend backend;
  Pricer pricer({}, cache_, {});
  Placement placement = Place(pricer, backend).value();
  const Plan plan = PriceInContext(placement, Lowering(backend), options_).value().plans.front();
  EXPECT_EQ(Count(placement, plan, "disturbed"), 4u);
}

/// Every fifth kernel that runs is disturbed, so that each kernel is mostly not, and each plan of four kernels mostly is.
class FlickeringBackend : public MoodyBackend {
 protected:
  [[nodiscard]] Seconds SecondsOf(const Function&, const Variant&) const override {
    static int runs = 0;
    return [](bool) { return ++runs % 5 == 0 ? 11e-3 : 1e-3; };
  }
};

TEST_F(ContextPricingTest, TheDriftProbeIsOfUndisturbedSteps) {
  const FlickeringBackend backend;
  Pricer pricer({}, cache_, {});
  Placement placement = Place(pricer, backend).value();
  EXPECT_NEAR(PriceInContext(placement, Lowering(backend), options_).value().probe->seconds, 4e-3, 1e-4);
}

TEST_F(ContextPricingTest, WithoutTimeThePlanIsOfWhatWasTried) {
  options_.context_seconds = 0;
  Pricer pricer({}, cache_, {});
  Placement placement = Place(pricer).value();
  const Plan plan = PriceInContext(placement, Lowering(), options_).value().plans.front();
  EXPECT_EQ(Count(placement, plan, "flattering"), 4u) << "the others were never part of a whole program";
  EXPECT_EQ(placement.RoundsInContext(plan), 1u);
  EXPECT_TRUE(placement.Search()) << "the restriction does not outlast the pricing";
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

TEST_F(ContextPricingTest, OfPlansThatCannotBeToldApartThatOfFewerPartitionsIsTaken) {
  const PairingBackend backend;
  const auto price = [&](double noise_floor) {
    Pricer pricer({}, cache_, {});
    Placement placement = Place(pricer, backend).value();
    return PriceInContext(placement, Lowering(backend), options_, noise_floor).value().plans;
  };
  const std::vector<Plan> plans = price(0.015);
  EXPECT_EQ(plans.front().result.partitions, 3u);
  EXPECT_EQ(plans.back().name, "cheapest");
  EXPECT_EQ(plans.back().result.partitions, 4u);
  EXPECT_GT(plans.front().result.cost, plans.back().result.cost);
  EXPECT_LT(plans.front().result.cost.ToSeconds(), 1.015 * plans.back().result.cost.ToSeconds());
  const std::vector<Plan> again = price(0);
  EXPECT_EQ(again.front().result.choices, plans.front().result.choices) << "the noise floor is that of when prices were taken";
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

TEST_F(ContextPricingTest, WhatCrashedAfterPricingWasFinishedIsReplaced) {
  const SparingBackend backend;
  Pricer first({}, cache_, {});
  Placement placement = Place(first, backend).value();
  const Plan plan = PriceInContext(placement, Lowering(backend), options_).value().plans.front();
  ASSERT_EQ(Count(placement, plan, "usual"), 4u);
  // As the supervisor does when a kernel crashes in the race.
  const MeasurementKey tanh = placement.KeysOf(plan).at("collage_moody_moody_tanh");
  ASSERT_TRUE(cache_.Store(tanh, {{}, "crashed inside a whole plan"}));

  Pricer second({}, cache_, {});
  Placement again = Place(second, backend).value();
  const Result<PlansInContext> plans = PriceInContext(again, Lowering(backend), options_);
  ASSERT_TRUE(plans) << plans.error().message;
  EXPECT_EQ(Count(again, plans->plans.front(), "usual"), 3u);
  EXPECT_EQ(Count(again, plans->plans.front(), "steady"), 1u);
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

class UnsociableTest : public ContextPricingTest, public testing::WithParamInterface<std::tuple<int, bool>> {};

TEST_P(UnsociableTest, WhatFailsInsideAPlanIsInvalidAndTheSearchGoesOn) {
  const UnsociableBackend backend(std::get<0>(GetParam()), std::get<1>(GetParam()));
  Pricer pricer({}, cache_, {});
  Placement placement = Place(pricer, backend).value();
  ran_last = 0;
  const Result<PlansInContext> plans = PriceInContext(placement, Lowering(backend), options_);
  ASSERT_TRUE(plans) << plans.error().message;
  std::vector<MeasurementKey> refused;
  ASSERT_TRUE(ForEachEntry(cache_, [&](const CacheEntry& entry) {
    if (entry.key.variant != "unsociable" || entry.measurement.invalid_reason.empty()) return Status();
    EXPECT_THAT(entry.measurement.invalid_reason, testing::HasSubstr("inside a whole plan"));
    EXPECT_THAT(entry.measurement.invalid_reason, testing::HasSubstr("too many people"));
    refused.push_back(entry.key);
    return Status();
  }));
  // A kernel that fails late may have ended the plan before the next one's time came.
  EXPECT_GE(refused.size(), std::get<0>(GetParam()) > 100 ? 1u : 3u);
  for (const auto& [symbol, key] : placement.KeysOf(plans->plans.front())) EXPECT_THAT(refused, testing::Not(testing::Contains(key)));
}

TEST_F(ContextPricingTest, WhatFailsWhenTimeIsOverIsReplacedAllTheSame) {
  // The first round takes 0.4 s, and the second ends with a failure: then no plan of what was tried is left, and no time.
  options_.context_seconds = 0.6;
  const UnsociableBackend backend(/*good_runs=*/300, /*throws=*/false);
  Pricer pricer({}, cache_, {});
  Placement placement = Place(pricer, backend).value();
  ran_last = 0;
  const Result<PlansInContext> plans = PriceInContext(placement, Lowering(backend), options_);
  ASSERT_TRUE(plans) << plans.error().message;
  EXPECT_GE(Count(placement, plans->plans.front(), "steady"), 1u);
}

INSTANTIATE_TEST_SUITE_P(SoonAndLate, UnsociableTest, testing::Combine(testing::Values(5, 60, 300, 450), testing::Bool()));

}  // namespace
}  // namespace collage
