#include "collage/driver/plans.h"

#include <gtest/gtest.h>

#include "collage/decide/priced_problem.h"
#include "tests/driver/decided.h"
#include "tests/driver/host_library.h"
#include "tests/support/simulated_clock.h"

namespace collage {
namespace {

/// Takes two of its operators as one kernel, too.
class Fusing : public HostLibrary {
 public:
  using HostLibrary::HostLibrary;
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules = HostLibrary::Rules();
    rules.patterns.push_back({"library.pair", pattern::CallOf("sigmoid", {pattern::CallOf("nn.relu", {pattern::Wildcard()})}), {}});
    return rules;
  }
};

// Time is kept for building the plans that race: of a library alone those kernels that its plan has, not all that have a price.
TEST(PlansTest, OfASingleBackendTheKernelsOfOneCoverCount) {
  const SimulatedClock clock;
  MeasurementCache cache = MeasurementCache::Open({}).value();
  const Fusing library(200e-6);
  const Expr chain = Parsed("fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); %1 = sigmoid(%0); tanh(%1) }");
  Decided decided(chain, {&library}, cache);
  ASSERT_TRUE(decided.Decide());
  size_t priced = 0;
  for (size_t kernel = 0; kernel < decided.placement().kernels.size(); ++kernel) {
    ASSERT_TRUE(decided.MeasureAlone(kernel));
    priced += decided.placement().kernels[kernel].candidate != PlacedKernel::kNone ? 1 : 0;
  }
  ASSERT_EQ(priced, 4u);
  const PlanCounts counts = MostPlansToRace(decided.placement(), decided.Prices(), {});
  ASSERT_EQ(counts.single_backends.size(), 1u);
  EXPECT_EQ(counts.single_backends[0].size(), 2u);
}

TEST(PlansTest, AKernelIsCompiledAtEachOfItsPlaces) {
  const SimulatedClock clock;
  MeasurementCache cache = MeasurementCache::Open({}).value();
  const HostLibrary library(200e-6);
  Decided decided(Parsed("fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); %1 = nn.relu(%0); nn.relu(%1) }"), {&library}, cache);
  ASSERT_TRUE(decided.Decide());
  const SearchResult best = SearchAt(decided.placement().arms, Centres(decided.Prices()), decided.placement().Competing()).value();
  const PlanCounts counts = MostPlansToRace(decided.placement(), decided.Prices(), {}, &best);
  ASSERT_EQ(counts.of_best.size(), 3u);
  EXPECT_EQ(counts.of_best.front(), counts.of_best.back());
}

class SlowToCompile : public HostLibrary {
 public:
  using HostLibrary::HostLibrary;
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    SimulatedClock::Pass(1);
    return HostLibrary::Compile(function, device, variant);
  }
};

// A compile that never had time for a program built its best plan when time was over, and no library alone raced beside it.
TEST(PlansTest, TimeIsKeptForBuildingAPlanOfWhichNoProgramHasRun) {
  const SimulatedClock clock;
  MeasurementCache cache = MeasurementCache::Open({}).value();
  const SlowToCompile library(1e-3);
  CompileOptions options;
  options.budget_seconds = 10;
  Decided decided(Parsed("fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); %1 = sigmoid(%0); tanh(%1) }"), {&library}, cache, options);
  for (size_t kernel = 0; kernel < decided.placement().kernels.size(); ++kernel) ASSERT_TRUE(decided.MeasureAlone(kernel));
  const SearchResult best = SearchAt(decided.placement().arms, Centres(decided.Prices()), decided.placement().Competing()).value();
  const PlanCounts counts = MostPlansToRace(decided.placement(), decided.Prices(), {}, &best);
  EXPECT_EQ(counts.of_best.size(), 3u);
  ASSERT_EQ(counts.single_backends.size(), 1u);
  EXPECT_EQ(counts.single_backends[0].size(), 0u) << "they are compiled for the best plan";
  SimulatedClock::Pass(4.5);  // beside three compiles
  decided.measurer().SetContestants({}, 0);
  EXPECT_FALSE(decided.measurer().IsOver());
  decided.measurer().SetContestants(counts, 0);
  EXPECT_TRUE(decided.measurer().IsOver()) << "three more take what is left";
}

}  // namespace
}  // namespace collage
