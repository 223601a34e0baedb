#include "collage/candidate/rule.h"

#include <unordered_set>

namespace collage {

std::vector<CandidatePartition> AllCandidates(const DataflowGraph& graph, const SpecPointer& spec, std::vector<Refusal>* refusals) {
  std::vector<CandidatePartition> candidates;
  for (SubGraph& sub_graph : spec->rule->AllSubGraphs(graph, refusals)) candidates.push_back({std::move(sub_graph), spec});
  return candidates;
}

std::vector<CandidatePartition> AllCandidates(const DataflowGraph& graph, const std::vector<SpecPointer>& specs,
                                              std::vector<Refusal>* refusals) {
  std::vector<CandidatePartition> all;
  const auto hash = [&](size_t i) { return all[i].sub_graph.Hash(); };
  const auto equal = [&](size_t i, size_t j) {
    return all[i].sub_graph == all[j].sub_graph && all[i].spec->is_host == all[j].spec->is_host &&
           (all[i].spec == all[j].spec || all[i].spec->targets == all[j].spec->targets);
  };
  std::unordered_set<size_t, decltype(hash), decltype(equal)> seen(0, hash, equal);
  for (const SpecPointer& spec : specs) {
    for (CandidatePartition& candidate : AllCandidates(graph, spec, refusals)) {
      all.push_back(std::move(candidate));
      if (!seen.insert(all.size() - 1).second) all.pop_back();
    }
  }
  return all;
}

}  // namespace collage
