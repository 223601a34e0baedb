#include "collage/driver/plan_measurer.h"

#include <gtest/gtest.h>

#include <utility>

#include "collage/measure/race.h"
#include "tests/driver/decided.h"
#include "tests/driver/host_library.h"

namespace collage {
namespace {

/// Two ways to the same, each slow until it has run for a while behind the other, whose weights are in the caches.
class SlowBehindOthers : public HostLibrary {
 public:
  static constexpr double kWarm = 1e-3;
  SlowBehindOthers() : HostLibrary(kWarm) {}
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device&) const override {
    // Nothing by which transitions are measured.
    if (function.body->type().AsTensor()->shape != Shape{1, 8}) return {};
    return {{"one", {Layout()}, {Layout()}}, {"other", {Layout()}, {Layout()}}};
  }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    return CompileTimed(function, device, variant, [this, number = ++kernels_] {
      if (std::exchange(ran_last_, number) != number) since_ = Clock::now();
      return Clock::SecondsSince(since_) < kSecondsFillingCaches ? 2 * kWarm : kWarm;
    });
  }

 private:
  mutable int kernels_ = 0;
  mutable int ran_last_ = 0;
  mutable Clock::time_point since_;
};

// The race runs each plan with warm caches, so prices and drift have to come from such runs.
TEST(PlanMeasurerTest, ProgramAndAnchorAreTimedWithWarmCaches) {
  const SimulatedClock clock;
  const SlowBehindOthers library;
  MeasurementCache cache = MeasurementCache::Open({}).value();
  Decided decided(Parsed("fn (%x: Tensor[(1, 8), float32]) { nn.relu(%x) }"), {&library}, cache);
  const Placement& placement = decided.placement();
  size_t candidate = 0;
  while (!placement.candidates[candidate].is_partition) ++candidate;
  ASSERT_TRUE(decided.measurer().MeasureInProgram({{candidate, 0}}));
  const Measurer::Found found = decided.measurer().MeasureInProgram({{candidate, 1}}).value();
  ASSERT_EQ(found.size(), 1u) << "the anchor's kernels ran in another turn";
  for (const auto& [kernel, evidence] : found) {
    const Row& row = evidence.in_program.at(0).row;
    EXPECT_NEAR(row.seconds, SlowBehindOthers::kWarm, SlowBehindOthers::kWarm / 10) << placement.kernels[kernel].key.variant;
    EXPECT_NEAR(row.anchor_seconds, SlowBehindOthers::kWarm, SlowBehindOthers::kWarm / 10);
  }
}

}  // namespace
}  // namespace collage
