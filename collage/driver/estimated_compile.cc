#include "collage/driver/estimated_compile.h"

#include <set>

#include "collage/backend/registry.h"
#include "collage/driver/model_inputs.h"
#include "collage/driver/more_candidates.h"
#include "collage/driver/placement_report.h"
#include "collage/driver/search_by_name.h"
#include "collage/explain/what_if_report.h"
#include "collage/measure/verification.h"
#include "collage/support/clock.h"

namespace collage {
namespace {

Result<SearchResult> Cheapest(const Placement& placement, const Estimates& estimates, const CompileOptions& options) {
  return SearchByName(options.search, placement, estimates.costs(), /*measure=*/{}, options.progress);
}

/// How far the program is from the reference; nothing where that gives no finite value.
Result<std::optional<double>> CompareWhole(Executable& executable, const Expr& function) {
  const ReferenceSample sample = COLLAGE_TRY(ModelSample(function));
  const Agreement agreement =
      COLLAGE_TRY(CompareWithReference([&](std::span<const Tensor> inputs) { return executable.Run(inputs); }, sample));
  const std::string objection = ObjectionOfProgram(agreement, sample.tolerance);
  if (!objection.empty()) return Fail("the program of the estimator's plan " + objection);
  return IsComparison(agreement) ? std::optional(agreement.difference) : std::nullopt;
}

std::vector<Evidence> NoEvidence(const EstimatedPlan& planned) { return std::vector<Evidence>(planned.placement->kernels.size()); }

CandidateCounts Counts(const EstimatedPlan& planned) {
  CandidateCounts counts;
  counts.found = planned.placement->candidates.size();
  counts.distinct = planned.estimated;
  for (const Price& price : planned.prices) counts.variants.unpriced += price.centre.IsUnknown() ? 1 : 0;
  return counts;
}

}  // namespace

Result<EstimatedPlan> PlanByEstimates(const Expr& function, const std::vector<PlacementTarget>& targets, const CompileOptions& options) {
  // In memory: of what was measured before, nothing counts.
  MeasurementCache nothing = COLLAGE_TRY(MeasurementCache::Open({}));
  Pricer pricer({DeviceKind::kCpu, 0, options.threads}, nothing, options.measure);
  PlacementPointer placement = COLLAGE_TRY(
      MakePlacement(function, targets, pricer, options.progress, options.constraints,
                    {.choose_devices = options.choose_devices, .stated_rules = options.partition_rules, .free_transitions = true}));
  placement = COLLAGE_TRY(WithGreedyPlans(placement, GreedyPlans(*placement), pricer));
  Estimates estimates(options.estimator);
  while (true) {
    COLLAGE_TRY_STATUS(estimates.Add(*placement, options.progress));
    SearchResult cheapest = COLLAGE_TRY(Cheapest(*placement, estimates, options));
    Plan plan = MakePlan(*placement, "searched", std::move(cheapest));
    PlacementAddition joined{JoinedPartitions(*placement, plan), {}};
    if (joined.candidates.empty()) return EstimatedPlan{placement, estimates.Prices(), std::move(plan), estimates.count()};
    placement = COLLAGE_TRY(Extend(*placement, std::move(joined), pricer));
  }
}

CompileReport ReportOf(const EstimatedPlan& planned, const CompileOptions& options) {
  CompileReport report = ReportOf(*planned.placement, {NoEvidence(planned), planned.prices}, planned.plan);
  report.threads = options.threads;
  report.searcher = options.search;
  report.winner = "searched";
  report.is_estimated = true;
  report.proved_lower_bound_us = report.lower_bound_us;
  report.candidates = Counts(planned);
  return report;
}

Result<CompiledModel> CompileByEstimates(OnnxModel model, const IRModule& module, const std::vector<PlacementTarget>& targets,
                                         const std::string& name, const CompileOptions& options) {
  const Clock::time_point start = Clock::now();
  const EstimatedPlan planned = COLLAGE_TRY(PlanByEstimates(module.MainExpr(), targets, options));
  LowerOptions lower;
  lower.device = {DeviceKind::kCpu, 0, options.threads};
  lower.find_backend = FindBackend;
  lower.progress = options.progress;
  lower.program.input_names = std::move(model.input_names);
  lower.program.output_names = std::move(model.output_names);
  LoweredModel lowered = COLLAGE_TRY(Lower(COLLAGE_TRY(Apply(*planned.placement, planned.plan)), lower));
  const std::optional<double> difference = COLLAGE_TRY(CompareWhole(lowered.executable, module.MainExpr()));
  CompileReport report = ReportOf(planned, options);
  report.model = name;
  if (!difference) report.not_compared = "the reference gives no finite value on the inputs that were tried";
  if (model.remainder) report.remainder = model.remainder->Summary();
  for (const auto& [input, type] : lowered.executable.inputs()) report.inputs.emplace_back(input, type.shape);
  report.elapsed_seconds = Clock::SecondsSince(start);
  std::string metadata =
      ToMetadata(OfEveryCompile(report), RecordOf(*planned.placement, {NoEvidence(planned), planned.prices}, planned.plan));
  return CompiledModel{std::move(lowered), std::move(report), std::move(metadata)};
}

}  // namespace collage
