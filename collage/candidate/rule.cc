#include "collage/candidate/rule.h"

#include <algorithm>
#include <unordered_map>

namespace collage {

std::vector<CandidatePartition> AllCandidates(const DataflowGraph& graph, const SpecPointer& spec, std::vector<Refusal>* refusals) {
  std::vector<CandidatePartition> candidates;
  for (SubGraph& sub_graph : spec->rule->AllSubGraphs(graph, refusals)) candidates.push_back({std::move(sub_graph), spec});
  return candidates;
}

std::vector<CandidatePartition> AllCandidates(const DataflowGraph& graph, const std::vector<SpecPointer>& specs,
                                              std::vector<Refusal>* refusals) {
  std::vector<CandidatePartition> all;
  std::unordered_map<uint64_t, std::vector<size_t>> seen;
  for (const SpecPointer& spec : specs) {
    for (CandidatePartition& candidate : AllCandidates(graph, spec, refusals)) {
      std::vector<size_t>& alike = seen[candidate.sub_graph.Hash()];
      const bool duplicate = std::any_of(alike.begin(), alike.end(), [&](size_t other) {
        return all[other].sub_graph == candidate.sub_graph && all[other].spec->targets == spec->targets &&
               all[other].spec->is_host == spec->is_host;
      });
      if (duplicate) continue;
      alike.push_back(all.size());
      all.push_back(std::move(candidate));
    }
  }
  return all;
}

}  // namespace collage
