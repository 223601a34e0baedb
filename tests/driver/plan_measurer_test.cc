#include "collage/driver/plan_measurer.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "collage/measure/race.h"
#include "tests/driver/decided.h"
#include "tests/driver/host_library.h"

namespace collage {
namespace {

/// Two ways to the same.
class TwoWays : public HostLibrary {
 public:
  static constexpr double kUsual = 1e-3;
  TwoWays() : HostLibrary(kUsual) {}
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device&) const override {
    // Nothing by which transitions are measured.
    if (function.body->type().AsTensor()->shape != Shape{1, 8}) return {};
    return {{"one", {Layout()}, {Layout()}}, {"other", {Layout()}, {Layout()}}};
  }
};

/// Each way is slow until it has run for a while behind the other, whose weights are in the caches.
class SlowBehindOthers : public TwoWays {
 public:
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    return CompileTimed(function, device, variant, [this, number = ++kernels_] {
      if (std::exchange(ran_last_, number) != number) since_ = Clock::now();
      return Clock::SecondsSince(since_) < kSecondsFillingCaches ? 2 * kUsual : kUsual;
    });
  }

 private:
  mutable int kernels_ = 0;
  mutable int ran_last_ = 0;
  mutable Clock::time_point since_;
};

/// Seconds of the second way and of the first, its anchor, in a round of which `before` is told where it is given.
Row RoundOf(const HostLibrary& library, const std::function<void()>& before = nullptr) {
  MeasurementCache cache = MeasurementCache::Open({}).value();
  Decided decided(Parsed("fn (%x: Tensor[(1, 8), float32]) { nn.relu(%x) }"), {&library}, cache);
  size_t candidate = 0;
  while (!decided.placement().candidates[candidate].is_partition) ++candidate;
  EXPECT_TRUE(decided.measurer().MeasureInProgram({{candidate, 0}}));
  if (before) before();
  const Measurer::Found found = decided.measurer().MeasureInProgram({{candidate, 1}}).value();
  EXPECT_EQ(found.size(), 1u) << "the anchor's kernels ran in another turn";
  return found.front().second.in_program.at(0).row;
}

void ExpectUsual(const Row& row) {
  EXPECT_NEAR(row.seconds, TwoWays::kUsual, TwoWays::kUsual / 10);
  EXPECT_NEAR(row.anchor_seconds, TwoWays::kUsual, TwoWays::kUsual / 10);
}

// The race runs each plan with warm caches, so prices and drift have to come from such runs.
TEST(PlanMeasurerTest, ProgramAndAnchorAreTimedWithWarmCaches) {
  const SimulatedClock clock;
  ExpectUsual(RoundOf(SlowBehindOthers()));
}

/// Somebody else uses the machine for a moment.
class SlowForAMoment : public TwoWays {
 public:
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    return CompileTimed(function, device, variant, [this] { return Clock::now() < disturbed_until_ ? 2.5 * kUsual : kUsual; });
  }
  void DisturbFor(double seconds) { disturbed_until_ = Clock::After(seconds); }

 private:
  Clock::time_point disturbed_until_;
};

TEST(PlanMeasurerTest, ADisturbedTurnOfTheAnchorIsNotTakenForASlowMachine) {
  const SimulatedClock clock;
  SlowForAMoment library;
  ExpectUsual(RoundOf(library, [&] { library.DisturbFor(2 * kSecondsFillingCaches); }));
}

}  // namespace
}  // namespace collage
