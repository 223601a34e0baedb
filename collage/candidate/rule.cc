#include "collage/candidate/rule.h"

#include <algorithm>
#include <unordered_set>

namespace collage {

std::vector<SubGraph> PartitionRule::AllSubGraphs(const DataflowGraph& graph, std::vector<Refusal>* refusals) const {
  std::vector<SubGraph> all;
  ForEach(graph, refusals, [&](SubGraph sub_graph) { all.push_back(std::move(sub_graph)); });
  return all;
}

std::vector<CandidatePartition> AllCandidates(const DataflowGraph& graph, const SpecPointer& spec, std::vector<Refusal>* refusals) {
  return AllCandidates(graph, std::vector<SpecPointer>{spec}, refusals);
}

std::vector<CandidatePartition> AllCandidates(const DataflowGraph& graph, const std::vector<SpecPointer>& specs,
                                              std::vector<Refusal>* refusals) {
  std::vector<CandidatePartition> all;
  const auto alike = [](const PartitionSpec& a, const PartitionSpec& b) { return a.targets == b.targets && a.is_host == b.is_host; };
  const auto hash = [&](size_t i) { return all[i].sub_graph.Hash(); };
  const auto equal = [&](size_t i, size_t j) { return all[i].sub_graph == all[j].sub_graph && alike(*all[i].spec, *all[j].spec); };
  std::unordered_set<size_t, decltype(hash), decltype(equal)> seen(0, hash, equal);
  for (const SpecPointer& spec : specs) {
    // A rule finds nothing twice, so only specs for the same targets can find the same.
    const auto has_rival = [&](const SpecPointer& other) { return other != spec && alike(*other, *spec); };
    const bool look_for_duplicates = std::any_of(specs.begin(), specs.end(), has_rival) || std::count(specs.begin(), specs.end(), spec) > 1;
    const size_t refusals_before = refusals ? refusals->size() : 0;
    spec->rule->ForEach(graph, refusals, [&](SubGraph sub_graph) {
      all.push_back({std::move(sub_graph), spec});
      if (look_for_duplicates && !seen.insert(all.size() - 1).second) all.pop_back();
    });
    for (size_t i = refusals_before; refusals && i < refusals->size(); ++i) (*refusals)[i].backend = spec->name;
  }
  return all;
}

}  // namespace collage
