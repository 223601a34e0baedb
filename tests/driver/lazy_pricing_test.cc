#include <gtest/gtest.h>

#include "collage/driver/placement.h"
#include "collage/op/table.h"
#include "tests/driver/timed_kernel.h"

namespace collage {
namespace {

/// Matrix products of 2 ms, with or without what follows them, and everything else at 0.1 ms.
class ProductBackend : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "products"; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override {
    const auto product = [] { return pattern::CallOf("nn.dense", {pattern::Wildcard(), pattern::IsConstant()}); };
    BackendRules rules;
    rules.patterns.push_back({"products.dense", product(), {}});
    rules.patterns.push_back({"products.dense_relu", pattern::CallOf("nn.relu", {product()}), {}});
    rules.patterns.push_back({"products.relu", pattern::CallOf("nn.relu", {pattern::Wildcard()}), {}});
    return rules;
  }
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device&) const override {
    // Nothing by which transitions are measured.
    const TensorType* result = function.body->type().AsTensor();
    if (function.parameters.size() != 1 || result->shape.size() != 2 || result->shape[0] != 1) return {};
    return {{"only", {Layout()}, {Layout()}}};
  }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    const bool only_relu = IsCallOf(function.body, "nn.relu") && function.body->As<Call>()->args[0]->As<Var>();
    return CompileTimed(function, device, variant, [seconds = only_relu ? 1e-4 : 2e-3] { return seconds; });
  }
};

/// Three products of different sizes, each with its activation.
Expr Network() {
  const Expr x = MakeVar("x", TensorType{{1, 8}});
  Expr last = x;
  for (const int64_t width : {16, 32, 64}) {
    Tensor weight(TensorType{{width, last->type().AsTensor()->shape[1]}});
    last = MakeCall(Operators().Find("nn.dense"), {last, MakeConstant(weight)}).value();
    last = MakeCall(Operators().Find("nn.relu"), {last}).value();
  }
  return MakeFunction({x}, last).value();
}

class LazyPricingTest : public testing::Test {
 protected:
  Placement Place(Pricer& pricer) {
    return Placement::Create(Network(), {{{&backend_, "1", BackendRules::Style::kPattern}, backend_.Rules(), "cpu -compiler=products"}},
                             pricer, progress_)
        .value();
  }

  const SimulatedClock clock_;
  ProductBackend backend_;
  Progress progress_;
  MeasurementCache cache_ = MeasurementCache::Open({}).value();
};

TEST_F(LazyPricingTest, OfOneLibraryOnlyTheLargestMatchesAreMeasured) {
  Pricer pricer({}, cache_, {});
  Placement placement = Place(pricer);
  const Plan plan = placement.Search().value();
  EXPECT_EQ(plan.result.choices.size(), 3u);
  EXPECT_NEAR(plan.result.cost.ToSeconds(), 6e-3, 1e-4);
  const CandidateCounts counts = placement.Counts();
  EXPECT_EQ(counts.distinct, 9u);
  EXPECT_EQ(counts.measured, 3u);
  EXPECT_EQ(counts.variants.unpriced, 6u);
  EXPECT_EQ(counts.variants.assumed, 3u) << "the products alone; what activations take at least is proved";
  EXPECT_LT(placement.ProvedLowerBound().value(), plan.result.cost) << "without the assumption products alone might be cheap";

  Pricer again({}, cache_, {});
  Placement warm = Place(again);
  EXPECT_EQ(warm.Search().value().result.choices, plan.result.choices);
  EXPECT_EQ(again.counts().measured, 0u);
}

TEST_F(LazyPricingTest, EagerlyEverythingIsMeasuredAndThePlanIsTheSame) {
  Pricer pricer({}, cache_, {});
  Placement placement = Place(pricer);
  ASSERT_TRUE(placement.PriceEverything());
  const Plan plan = placement.Search().value();
  EXPECT_EQ(plan.result.choices.size(), 3u);
  EXPECT_EQ(placement.Counts().measured, 9u);
  EXPECT_EQ(placement.Counts().variants.unpriced, 0u);
  EXPECT_EQ(placement.ProvedLowerBound().value(), plan.result.cost);
}

/// Takes activations, and compiles none of them.
class BrokenBackend : public ProductBackend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "broken"; }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function&, const Device&, const Variant&) const override {
    return Fail("broken");
  }
};

TEST_F(LazyPricingTest, WhereAllOfABackendIsInvalidTheFallbackHasABoundToo) {
  const BrokenBackend broken;
  Pricer pricer({}, cache_, {});
  Placement placement =
      Placement::Create(Network(),
                        {{{&broken, "1", BackendRules::Style::kPattern}, broken.Rules(), "cpu -compiler=broken"},
                         {{&backend_, "1", BackendRules::Style::kPattern}, backend_.Rules(), "cpu", /*is_fallback=*/true}},
                        pricer, progress_)
          .value();
  const Plan plan = placement.Search().value();
  const Result<Cost> proved = placement.ProvedLowerBound();
  ASSERT_TRUE(proved) << proved.error().message;
  EXPECT_LE(*proved, plan.result.cost);
}

}  // namespace
}  // namespace collage
