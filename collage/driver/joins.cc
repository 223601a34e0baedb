#include "collage/driver/joins.h"

#include <algorithm>
#include <utility>

#include "collage/driver/more_candidates.h"
#include "collage/driver/number_list.h"
#include "collage/explain/plan_names.h"

namespace collage {
bool IsOf(const Placement& placement, const JoinedPlan& join) {
  const bool has_choices = std::ranges::all_of(join.choices, [&](const SearchChoice& choice) {
    return choice.candidate < placement.candidates.size() && choice.variant < placement.arms.kernel_of[choice.candidate].size();
  });
  const auto is_choice = [&](size_t i) { return i < join.choices.size(); };
  return has_choices && std::ranges::all_of(join.branches, [&](const Branches& branches) {
           return std::ranges::all_of(branches, [&](const std::vector<size_t>& share) { return std::ranges::all_of(share, is_choice); });
         });
}

Result<PlacementPointer> Joined(const Placement& placement, const JoinedPlan& join, Pricer& pricer) {
  SearchResult result;
  result.choices = join.choices;
  const Plan plan = MakePlan(placement, kSearchedPlan, std::move(result));
  PlacementAddition addition{JoinedPartitions(placement, plan), {}};
  for (const Branches& branches : join.branches) {
    if (std::optional<PricedCandidate> candidate = SideBySideCandidate(placement, plan, branches))
      addition.candidates.push_back(std::move(*candidate));
  }
  return Extend(placement, std::move(addition), pricer);
}

Result<std::vector<JoinedPlan>> LoadJoins(Pricer& pricer, const MeasurementKey& key) {
  const std::optional<Measurement> kept = COLLAGE_TRY(pricer.cache().Find(key));
  if (!kept) return std::vector<JoinedPlan>();
  NumberReader reader(kept->samples);
  const auto next = [&] { return reader.Next(); };
  const auto next_choice = [&] {
    const size_t candidate = reader.Next();
    return SearchChoice{candidate, reader.Next()};
  };
  const auto next_share = [&] { return reader.NextList(next); };
  const auto next_branches = [&] { return reader.NextList(next_share); };
  std::vector<JoinedPlan> joins = reader.NextList([&] {
    std::vector<SearchChoice> choices = reader.NextList(next_choice);
    return JoinedPlan{std::move(choices), reader.NextList(next_branches)};
  });
  return reader.IsWhole() ? joins : std::vector<JoinedPlan>();
}

Status StoreJoins(Pricer& pricer, const MeasurementKey& key, const std::vector<JoinedPlan>& joins) {
  NumberWriter writer;
  writer.AddList(joins, [&](const JoinedPlan& join) {
    writer.AddList(join.choices, [&](const SearchChoice& choice) {
      writer.Add(choice.candidate);
      writer.Add(choice.variant);
    });
    writer.AddList(join.branches, [&](const Branches& branches) {
      writer.AddList(branches, [&](const std::vector<size_t>& share) { writer.AddList(share, [&](size_t i) { writer.Add(i); }); });
    });
  });
  return pricer.cache().Store(key, {std::move(writer).Numbers(), {}});
}

}  // namespace collage
