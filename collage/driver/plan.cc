#include "collage/driver/plan.h"

#include <algorithm>
#include <set>

#include "collage/driver/candidates.h"
#include "collage/driver/whole_model.h"
#include "collage/partition/cover.h"

namespace collage {

Plan MakePlan(const Placement& placement, std::string name, SearchResult result) {
  Plan plan{std::move(name), std::move(result)};
  const std::vector<std::string> symbols = PartitionSymbols(*placement.formed.graph, placement.candidates, plan.result.choices);
  for (size_t i = 0; i < symbols.size(); ++i) {
    const SearchChoice& choice = plan.result.choices[i];
    if (!symbols[i].empty()) plan.kernels.push_back({i, placement.arms.kernel_of[choice.candidate][choice.variant], symbols[i]});
  }
  return plan;
}

std::vector<size_t> FormsOf(const Placement& placement, const std::vector<SearchChoice>& choices) {
  std::set<size_t> forms;
  for (const SearchChoice& choice : choices) {
    placement.built.own[choice.candidate].ForEach([&](size_t node) { forms.insert(placement.formed.FormOf(placement.built.nodes[node])); });
  }
  forms.erase(FormedGraph::kNoForm);
  return {forms.begin(), forms.end()};
}

Result<IRModule> Apply(const Placement& placement, const Plan& plan) {
  const std::vector<SearchChoice>& choices = plan.result.choices;
  Cover cover = CoverOf(placement, choices);
  const std::vector<size_t> forms = FormsOf(placement, choices);
  if (forms.empty()) {
    IRModule module = COLLAGE_TRY(ApplyCover(IRModule::FromMain(placement.function()), *placement.graph, cover));
    return WithCarriedModels(placement, choices, std::move(module));
  }
  const AppliedForms applied = COLLAGE_TRY(ApplyForms(placement.formed, forms));
  const DataflowGraph graph(applied.function);
  const DataflowGraph& whole = *placement.formed.graph;
  std::unordered_map<PostDfsIndex, PostDfsIndex> image;
  for (PostDfsIndex node = 0; node < whole.size(); ++node) {
    const auto at = applied.image.find(whole[node].expr.get());
    if (at != applied.image.end()) image.emplace(node, graph.Find(at->second));
  }
  for (ChosenPartition& chosen : cover) chosen.candidate.sub_graph = chosen.candidate.sub_graph.Substitute(graph, image);
  return ApplyCover(IRModule::FromMain(applied.function), graph, cover);
}

std::string Save(const Placement& placement, const Plan& plan) {
  return SavePlan(*placement.graph, CoverOf(placement, plan.result.choices));
}

bool UsesPrecision(const Placement& placement, const std::vector<SearchChoice>& choices) {
  return std::any_of(choices.begin(), choices.end(), [&](const SearchChoice& choice) { return placement.UsesPrecision(choice); });
}

double ToleranceOf(const Placement& placement, const std::vector<SearchChoice>& choices, const ReferenceSample& sample) {
  return UsesPrecision(placement, choices) ? std::max(sample.tolerance, placement.precision->tolerance) : sample.tolerance;
}

std::vector<double> TransitionsOf(const Placement& placement, const std::vector<SearchChoice>& choices) {
  const auto& transition = placement.built.problem.transition;
  std::vector<double> seconds(choices.size(), 0);
  std::optional<size_t> last;
  for (size_t i = 0; i < choices.size() && !transition.empty(); ++i) {
    const PricedCandidate& candidate = placement.candidates[choices[i].candidate];
    if (!candidate.is_partition) continue;
    if (last) seconds[i] = transition[*last][candidate.backend].ToSeconds();
    last = candidate.backend;
  }
  return seconds;
}

bool IsPreferred(const Placement& placement, const Plan& a, const Plan& b) {
  if (a.result.partitions != b.result.partitions) return a.result.partitions < b.result.partitions;
  return ComparePreference(placement.built.problem, a.result.choices, b.result.choices) < 0;
}

}  // namespace collage
