#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collage/driver/compile.h"
#include "collage/driver/plan.h"
#include "collage/driver/plan_measurer.h"
#include "collage/driver/plans.h"
#include "collage/explain/report.h"
#include "collage/lower/lower.h"
#include "collage/op/reference_sample.h"

namespace collage {

struct RaceOutcome {
  bool is_of_wrong_kernels = false;  ///< nothing raced: kernels were found wrong, without which plans are others
  std::string objection;             ///< where no plan agrees with the reference, though its kernels do: what the best one does; else empty
  size_t winner = 0;
  std::optional<LoweredModel> lowered;  ///< the program that raced
  std::vector<PlanTiming> timings;      ///< "chosen" first, then others of several backends, then the single ones in their order
  std::vector<MissingPlan> missing;     ///< single backends that failed in the race, or differ from the reference
  /// How far an A/A pair of the same race is apart: half the interval of their ratio. Nothing where there were too few rounds to tell.
  std::optional<double> noise;
  /// The searched plan's time over that of the fastest single-backend plan, less one; nothing when either did not finish.
  std::optional<double> apparent_loss;
  bool raced = false;
  double drift = 1;  ///< how many times slower the machine was during the race than at the usual moment of the prices
  /// Why the program's outputs, or some operators of it, could not be compared with the reference; empty where all were.
  std::string not_compared;
  /// How far rounding alone takes the reference from itself, where that is what excuses the program's difference; else empty.
  std::string rounding;
};

/// Gives the model's inputs and what the reference makes of them; asked only where something has to run.
using GetSample = std::function<Result<const ReferenceSample*>()>;

/// Looks for kernels of a plan that make it differ from the reference, by so many times its tolerance; true where it found some.
using BlameKernels = std::function<Result<bool>(const Plan& plan, double excess)>;

/// Plans, and how they raced.
struct RacedPlans {
  FinalPlans plans;
  RaceOutcome race;
};
/// Races until the plans fit the memory of the devices, and consist of right kernels. `make` makes the plans of the placement; where one
/// that is no single backend's does not fit, or a device refuses memory, more is kept off (device_memory.h) and `use` told the placement.
/// Before, `forget` gives back what others hold of the devices, and answers whether that was anything. Errors of those.
Result<RacedPlans> RaceWithinMemory(const PlacementPointer& placement, const std::function<Result<FinalPlans>()>& make,
                                    const std::function<Result<RaceOutcome>(const std::vector<Plan>&)>& race,
                                    const std::function<bool()>& forget, const std::function<Status(PlacementPointer)>& use);

/// Lowers the contestants, compares each as a whole with the reference, and times them end to end, together with an A/A pair. The winner is
/// the fastest, or among those that Compare cannot tell from it the one with the fewest partitions, or of these that of the backends
/// declared first. Comparing is on the weights of this very model; who differs is out, and where `blame`, which may be empty, finds the
/// kernels, nobody races. Where it finds none, a program may be as far from the reference as `rounding` takes that from itself. What an
/// earlier race of equal programs found is taken from the cache; a verdict only where content was the same. `anchor`, which may be null,
/// tells the drift. Where the kernels of all have no room at the same time (KernelCache::HasRoom), plans race in groups, each beside the
/// first plan, by which their times are compared; after the first group `forget_anchor` is called, which may be empty. Whoever is not built
/// before the deadline of `progress` does not race, except for the first. `race_seconds` is for all rounds; where plans cannot be told
/// apart in it the race goes on until `end`.
Result<RaceOutcome> RacePlans(const Placement& placement, const std::vector<Plan>& contestants, Pricer& pricer, const LowerOptions& lower,
                              const GetSample& sample, const GetRounding& rounding, ProfiledPlan* anchor, double usual_anchor_seconds,
                              double race_seconds, Clock::time_point end, const CompileOptions& options, const Progress& progress,
                              const BlameKernels& blame = {}, const std::function<void()>& forget_anchor = {});

}  // namespace collage
