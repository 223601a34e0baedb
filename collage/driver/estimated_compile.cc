#include "collage/driver/estimated_compile.h"

#include <set>

#include "collage/backend/registry.h"
#include "collage/driver/model_inputs.h"
#include "collage/driver/more_candidates.h"
#include "collage/driver/placement_report.h"
#include "collage/driver/search_by_name.h"
#include "collage/explain/plan_names.h"
#include "collage/explain/what_if_report.h"
#include "collage/measure/verification.h"
#include "collage/support/clock.h"
#include "collage/support/log.h"

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

std::vector<size_t> KernelsThatCannotBeMade(const EstimatedPlan& planned) {
  const Placement& placement = *planned.placement;
  std::set<size_t> kernels;
  for (const PlanKernel& kernel : planned.plan.kernels) kernels.insert(kernel.kernel);
  std::vector<size_t> refused;
  for (const size_t number : kernels) {
    const PlacedKernel& kernel = placement.kernels[number];
    const PricedCandidate& candidate = placement.candidates[kernel.candidate];
    const Function& function = *candidate.FunctionOf(kernel.variant)->As<Function>();
    const Device& device = placement.devices[placement.DeviceOf(candidate.backend)];
    const auto made = placement.targets[candidate.backend].backend->Compile(function, device, kernel.variant);
    if (made) continue;
    spdlog::info("{} {}: {}", kernel.key.backend, kernel.key.variant, made.error().message);
    refused.push_back(number);
  }
  return refused;
}

}  // namespace

Result<EstimatedPlan> PlanByEstimates(const Expr& function, const std::vector<PlacementTarget>& targets, const CompileOptions& options,
                                      const KernelMaker& make) {
  // In memory: of what was measured before, nothing counts.
  MeasurementCache nothing = COLLAGE_TRY(MeasurementCache::Open({}));
  Pricer pricer({DeviceKind::kCpu, 0, options.threads}, nothing, options.measure);
  PlacementPointer placement = COLLAGE_TRY(MakePlacement(function, targets, pricer, options.progress, options.constraints,
                                                         {.choose_devices = options.choose_devices,
                                                          .stated_rules = options.partition_rules,
                                                          .free_transitions = true,
                                                          .forms = AllForms(options.forms)}));
  placement = COLLAGE_TRY(WithGreedyPlans(placement, GreedyPlans(*placement), pricer));
  Estimates estimates(options.estimator);
  while (true) {
    COLLAGE_TRY_STATUS(estimates.Add(*placement, options.progress));
    SearchResult cheapest = COLLAGE_TRY(Cheapest(*placement, estimates, options));
    Plan plan = MakePlan(*placement, kSearchedPlan, std::move(cheapest));
    PlacementAddition joined{JoinedPartitions(*placement, plan), {}};
    if (!joined.candidates.empty()) {
      placement = COLLAGE_TRY(Extend(*placement, std::move(joined), pricer));
      continue;
    }
    EstimatedPlan planned{placement, estimates.Prices(), std::move(plan), estimates.count()};
    const std::vector<size_t> refused = make ? COLLAGE_TRY(make(planned)) : std::vector<size_t>();
    if (refused.empty()) return planned;
    for (const size_t kernel : refused) estimates.MarkInvalid(kernel);
  }
}

CompileReport ReportOf(const EstimatedPlan& planned, const CompileOptions& options) {
  CompileReport report = ReportOf(*planned.placement, {NoEvidence(planned), planned.prices}, planned.plan);
  report.threads = options.threads;
  report.searcher = options.search;
  report.winner = kSearchedPlan;
  report.is_estimated = true;
  report.proved_lower_bound_us = report.lower_bound_us;
  report.candidates = Counts(planned);
  return report;
}

Result<CompiledModel> CompileByEstimates(OnnxModel model, const IRModule& module, const std::vector<PlacementTarget>& targets,
                                         const std::string& name, const CompileOptions& options) {
  const Clock::time_point start = Clock::now();
  LowerOptions lower;
  lower.device = {DeviceKind::kCpu, 0, options.threads};
  lower.find_backend = FindBackend;
  lower.progress = options.progress;
  lower.program.input_names = std::move(model.input_names);
  lower.program.output_names = std::move(model.output_names);
  std::optional<LoweredModel> lowered;
  const auto make = [&](const EstimatedPlan& planned) -> Result<std::vector<size_t>> {
    Result<LoweredModel> made = Lower(COLLAGE_TRY(Apply(*planned.placement, planned.plan)), lower);
    if (made) {
      lowered = std::move(*made);
      return std::vector<size_t>();
    }
    // Kernels are only looked at one by one where they do not all come about.
    std::vector<size_t> refused = options.progress.ShouldStop() ? std::vector<size_t>() : KernelsThatCannotBeMade(planned);
    if (refused.empty()) return Fail(made.error());
    return refused;
  };
  const EstimatedPlan planned = COLLAGE_TRY(PlanByEstimates(module.MainExpr(), targets, options, make));
  const std::optional<double> difference = COLLAGE_TRY(CompareWhole(lowered->executable, module.MainExpr()));
  CompileReport report = ReportOf(planned, options);
  report.model = name;
  if (!difference) report.not_compared = "the reference gives no finite value on the inputs that were tried";
  if (model.remainder) report.remainder = model.remainder->Summary();
  for (const auto& [input, type] : lowered->executable.inputs()) report.inputs.emplace_back(input, type.shape);
  report.elapsed_seconds = Clock::SecondsSince(start);
  std::string metadata =
      ToMetadata(OfEveryCompile(report), RecordOf(*planned.placement, {NoEvidence(planned), planned.prices}, planned.plan));
  return CompiledModel{*std::move(lowered), std::move(report), std::move(metadata)};
}

}  // namespace collage
