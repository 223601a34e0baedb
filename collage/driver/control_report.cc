#include "collage/driver/control_report.h"

#include <algorithm>

#include "collage/explain/plan_names.h"

namespace collage {

void AddCounts(const CandidateCounts& part, CandidateCounts& whole) {
  whole.found += part.found;
  whole.distinct += part.distinct;
  whole.measured += part.measured;
  whole.rejected += part.rejected;
  whole.variants.measured += part.variants.measured;
  whole.variants.cached += part.variants.cached;
  whole.variants.unpriced += part.variants.unpriced;
  whole.variants.assumed += part.variants.assumed;
  whole.variants.too_long += part.variants.too_long;
}

void AddPlan(const BlockReport& block, CompileReport& whole) {
  const CompileReport& part = block.report;
  const std::string prefix = block.block + ":";
  for (PlanEntry entry : part.plan) {
    entry.symbol = prefix + entry.symbol;
    whole.plan.push_back(std::move(entry));
  }
  for (OperatorPlacement placement : part.operators) {
    placement.name = prefix + placement.name;
    if (!placement.symbol.empty()) placement.symbol = prefix + placement.symbol;
    whole.operators.push_back(std::move(placement));
  }
  whole.search_complete = whole.search_complete && part.search_complete;
  whole.open = std::max(whole.open, part.open);
  if (!part.noise) whole.noise.reset();
  if (whole.noise) whole.noise = std::max(*whole.noise, *part.noise);
  whole.raced = whole.raced || part.raced;
  whole.decisions_left_out += part.decisions_left_out;
  if (whole.not_compared.empty() && !part.not_compared.empty()) whole.not_compared = prefix + " " + part.not_compared;
  if (whole.rounding.empty() && !part.rounding.empty()) whole.rounding = prefix + " " + part.rounding;
  for (const MissingPlan& plan : part.missing) {
    if (plan.name == kSearchedPlan) whole.missing.push_back({prefix + " " + plan.name, plan.reason});
  }
  AddCounts(part.candidates, whole.candidates);
  if (!part.precision) return;
  if (!whole.precision) whole.precision = ReportedPrecision{part.precision->name, part.precision->tolerance};
  whole.precision->offered += part.precision->offered;
  whole.precision->taken += part.precision->taken;
}

CompileReport ReportOfControl(const std::string& model, const CompileOptions& options, const std::vector<BlockReport>& blocks) {
  CompileReport report;
  report.model = model;
  report.threads = options.threads;
  report.pins = options.constraints.pin;
  report.forbids = options.constraints.forbid;
  report.confidence = options.declared.confidence;
  report.smallest_difference = options.declared.smallest_difference;
  report.budget_seconds = options.budget_seconds;
  report.noise = 0;  // that of all blocks is known where that of each is
  for (const BlockReport& block : blocks) {
    AddPlan(block, report);
    // Each block has a race of its own, at a speed of its own; together they have none.
    report.estimated_us += EstimateAtPrices(block.report);
    report.lower_bound_us += LikelyBoundAtPrices(block.report);
    report.proved_lower_bound_us += block.report.proved_lower_bound_us;
  }
  return report;
}

}  // namespace collage
