#include "collage/driver/whole_plans.h"

#include "collage/explain/plan_names.h"
#include "collage/ir/structural.h"

namespace collage {
namespace {

// Among races: a plan that ran in turn with the anchor alone.
constexpr const char* kBesideTheAnchor = "beside the anchor";

}  // namespace

Cost WholePlans::TimeOf(const std::vector<SearchChoice>& cover) {
  if (!status_) return Cost::Invalid();
  const Result<Cost> found = Find(cover);
  if (!found) status_ = Fail(found.error());
  return found ? *found : Cost::Invalid();
}

Result<Cost> WholePlans::Find(const std::vector<SearchChoice>& cover) {
  SearchResult result;
  result.choices = cover;
  const IRModule module = COLLAGE_TRY(Apply(placement_, MakePlan(placement_, kSearchedPlan, std::move(result))));
  MeasurementKey key = pricer_.KeyOf(Fact::kRace, StructuralHash(module, ForPricing()), placement_.ContextHash());
  key.variant = kBesideTheAnchor;
  const bool is_first = !std::exchange(has_begun_, true);
  std::optional<Measurement> known = COLLAGE_TRY(pricer_.cache().Find(key));
  if (!known) {
    if (!measurer_ || (measurer_->IsOver() && !is_first)) return Cost::Invalid();
    Result<Measurer::Found> found = measurer_->MeasureInProgram(cover);
    // Devices have no memory for it.
    if (!found && measurer_->TakeMisfit()) return Cost::Invalid();
    if (!found) return Fail(found.error());
    known.emplace();
    for (auto& [kernel, evidence] : *found) {
      if (!evidence.invalid_reason.empty()) known->invalid_reason = evidence_[kernel].invalid_reason = evidence.invalid_reason;
      for (const ProgramRow& row : evidence.in_program) evidence_[kernel].in_program.push_back(row);
    }
    if (known->invalid_reason.empty()) known->samples = {measurer_->SecondsOfLast()};
    COLLAGE_TRY_STATUS(pricer_.cache().Store(key, *known));
  }
  return known->samples.empty() ? Cost::Invalid() : Cost::Seconds(known->samples.front());
}

}  // namespace collage
