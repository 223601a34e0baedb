#include "collage/driver/plans.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(counts.single_backends[0], (PlanCounts::KernelsByBackend{{"library", 2}}));
}

}  // namespace
}  // namespace collage
