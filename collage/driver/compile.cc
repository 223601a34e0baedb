#include "collage/driver/compile.h"

#include <algorithm>

#include "collage/cost/cache.h"
#include "collage/cost/noise_floor.h"
#include "collage/driver/context_pricing.h"
#include "collage/driver/placement.h"
#include "collage/driver/race.h"
#include "collage/driver/timer.h"
#include "collage/explain/what_if_report.h"
#include "collage/lower/save.h"
#include "collage/onnx/reader.h"
#include "collage/support/clock.h"
#include "collage/support/file.h"
#include "collage/support/log.h"
#include "collage/support/priority.h"
#include "collage/transform/pass.h"

namespace collage {
namespace {

Result<OnnxModel> ReadModel(const std::filesystem::path& path, const CompileOptions& options) {
  options.progress.Report({"reading", 0, 0, path.filename().string()});
  return ReadOnnxFile(path, {options.input_shapes, {}});
}

/// Of a budget, a seventh each is for pricing in context and for the race, the rest for kernels alone.
constexpr double kShareOfBudget = 1.0 / 7;

CompileOptions WithinBudget(CompileOptions options) {
  if (!options.budget_seconds) return options;
  options.context_seconds = std::min(options.context_seconds, *options.budget_seconds * kShareOfBudget);
  options.tuning_seconds = std::min(options.tuning_seconds, *options.budget_seconds * kShareOfBudget);
  options.race_seconds = std::min(options.race_seconds, *options.budget_seconds * kShareOfBudget);
  return options;
}

Progress MeasuringProgress(const CompileOptions& options) {
  Progress progress = options.progress;
  if (options.budget_seconds) {
    progress.deadline = Clock::After(std::max(0.0, *options.budget_seconds * (1 - 2 * kShareOfBudget) - options.seconds_spent));
  }
  return progress;
}

Status CheckFolder(const std::filesystem::path& folder) {
  if (folder.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return error ? Fail(folder.string() + ": cannot be made: " + error.message()) : CheckWritable(folder / "x");
}

Status SaveSingleBackends(const Placement& placement, const std::vector<Plan>& plans, const LowerOptions& lower, const std::string& model,
                          const CompileOptions& options) {
  for (const Plan& plan : plans) {
    if (!plan.is_single_backend || options.single_backends.empty()) continue;
    const std::filesystem::path file = options.single_backends / (plan.name + ".collage");
    options.progress.Report({"saving", 0, 0, file.string()});
    CompileReport report = COLLAGE_TRY(placement.Report(plan));
    report.model = model;
    report.winner = plan.name;
    const LoweredModel lowered = COLLAGE_TRY(Lower(COLLAGE_TRY(placement.Apply(plan)), lower));
    COLLAGE_TRY_STATUS(SaveProgram(lowered, ToMetadata(report, placement.Record(plan)), file));
  }
  return {};
}

/// A model placed, its plans raced.
struct PlacedModel {
  std::unique_ptr<Pricer> pricer;
  Placement placement;
  LowerOptions lower;
  PlansInContext priced;
  RaceOutcome race;
};

Result<PlacedModel> PlaceAndRace(const OnnxModel& model, const IRModule& module, const std::vector<PlacementTarget>& targets,
                                 const Device& device, MeasurementCache& cache, KernelTimer* timer, const CompileOptions& options,
                                 const Progress& measuring, double noise_floor) {
  auto pricer = std::make_unique<Pricer>(device, cache, ForModel(module.Main(), options.measure), timer);
  if (options.cache_only) pricer->AllowOnlyCached();
  Placement placement = COLLAGE_TRY(Placement::Create(module.MainExpr(), targets, *pricer, measuring, options.constraints));
  LowerOptions lower = placement.LoweringOptions();
  lower.artifacts = std::make_shared<ArtifactCache>();
  lower.program.input_names = model.input_names;
  lower.program.output_names = model.output_names;
  if (options.eager) COLLAGE_TRY_STATUS(placement.PriceEverything());
  if (options.tuning_seconds > 0) COLLAGE_TRY_STATUS(placement.Tune(options.tuning_seconds));
  PlansInContext priced = COLLAGE_TRY(PriceInContext(placement, lower, options, noise_floor));
  if (std::optional<Plan> joined = COLLAGE_TRY(placement.JoinAdjacentPartitions(priced.plans.front()))) {
    priced.plans.insert(priced.plans.begin() + 1, *std::move(joined));
  }
  RaceOutcome race = COLLAGE_TRY(RacePlans(placement, priced, lower, options));
  return PlacedModel{std::move(pricer), std::move(placement), std::move(lower), std::move(priced), std::move(race)};
}

}  // namespace

Result<CompiledModel> CompileModel(const std::filesystem::path& path, const CompileOptions& given) {
  const RaisedPriority priority;
  const Clock::time_point start = Clock::now();
  const CompileOptions options = WithinBudget(given);
  const Progress measuring = MeasuringProgress(options);
  const Device device{DeviceKind::kCpu, 0, options.threads};
  // Minutes of measuring should not end at a folder that is not there.
  if (!options.output.empty()) COLLAGE_TRY_STATUS(CheckWritable(options.output));
  COLLAGE_TRY_STATUS(CheckFolder(options.single_backends));
  if (options.cache_only && options.tuning_seconds > 0) return Fail("time for tuning is given, and nothing may be measured");
  if (options.cache_only && options.budget_seconds) return Fail("a budget for measuring is given, and nothing may be measured");
  const std::vector<PlacementTarget> targets = COLLAGE_TRY(ResolveTargets(options.targets, device));
  using Missing = MeasurementCache::Missing;
  MeasurementCache cache = COLLAGE_TRY(MeasurementCache::Open(options.cache, options.cache_only ? Missing::kFail : Missing::kCreate));

  OnnxModel model = COLLAGE_TRY(ReadModel(path, options));
  const IRModule module = COLLAGE_TRY(RunPasses(std::move(model.module), SafeGlobalPasses()));

  std::optional<double> noise_floor;
  if (!options.cache_only) noise_floor = MeasureNoiseFloor(device, options.progress);
  const std::unique_ptr<KernelTimer> timer = MakeTimer(options.isolated);
  const auto place = [&] {
    return PlaceAndRace(model, module, targets, device, cache, timer.get(), options, measuring, noise_floor.value_or(0));
  };
  PlacedModel placed = COLLAGE_TRY(place());
  if (placed.race.raced && placed.race.drift * kDisturbed < 1 && !options.budget_seconds && !options.progress.ShouldStop()) {
    spdlog::warn("the plans run {:.1f} times as fast as when prices were taken: something else was using the cores; taking them again",
                 1 / placed.race.drift);
    COLLAGE_TRY_STATUS(cache.ForgetStored());
    placed = COLLAGE_TRY(place());
  }
  Placement& placement = placed.placement;
  const std::vector<Plan>& contestants = placed.priced.plans;
  RaceOutcome& outcome = placed.race;

  CompileReport report = COLLAGE_TRY(placement.Report(contestants[outcome.winner]));
  report.model = path.filename().string();
  report.end_to_end = std::move(outcome.timings);
  report.winner = outcome.winner == 0 ? "searched" : contestants[outcome.winner].name;
  // Exploring may have ended before the prices came down to those of the plans.
  report.lower_bound_us =
      std::min({placed.priced.lower_bound.ToMicroseconds(), contestants.front().result.cost.ToMicroseconds(), report.estimated_us});
  report.proved_lower_bound_us = std::min(report.lower_bound_us, COLLAGE_TRY(placement.ProvedLowerBound()).ToMicroseconds());
  report.assumptions_hold_down_to = COLLAGE_TRY(placement.AssumptionsHoldDownTo());
  report.drift = outcome.drift;
  report.estimated_us *= outcome.drift;
  if (report.tie) report.tie->cost_us *= outcome.drift;
  report.lower_bound_us *= outcome.drift;
  report.proved_lower_bound_us *= outcome.drift;
  report.noise = outcome.noise;
  report.raced = outcome.raced;
  report.candidates = placement.Counts();
  report.noise_floor = noise_floor;
  report.apparent_loss = outcome.apparent_loss;
  if (!report.end_to_end.empty()) report.additive_error_us = report.end_to_end.front().median_ms * 1e3 - report.estimated_us;
  report.budget_seconds = options.budget_seconds;
  report.elapsed_seconds = options.seconds_spent + Clock::SecondsSince(start);
  COLLAGE_TRY_STATUS(SaveSingleBackends(placement, contestants, placed.lower, report.model, options));
  if (!options.output.empty()) {
    options.progress.Report({"saving", 0, 0, options.output.string()});
    COLLAGE_TRY_STATUS(SaveProgram(outcome.lowered, ToMetadata(report, placement.Record(contestants[outcome.winner])), options.output));
  }
  return CompiledModel{std::move(outcome.lowered.executable), std::move(report)};
}

}  // namespace collage
