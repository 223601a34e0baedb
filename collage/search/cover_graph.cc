#include "collage/search/cover_graph.h"

#include <unordered_map>

namespace collage {

std::optional<CoverGraph> CoverGraph::Build(const SearchProblem& problem, size_t most_covered) {
  std::vector<std::vector<uint32_t>> by_first(problem.node_count);
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    const IndexSet& inside = problem.candidates[c].inside;
    if (!inside.Empty()) by_first[inside.First()].push_back(static_cast<uint32_t>(c));
  }
  // By first uncovered node: sets found so far, numbered when their turn comes.
  std::vector<std::vector<uint32_t>> waiting(problem.node_count + 1);
  std::vector<Covered> found = {Covered{}};
  std::unordered_map<Covered, uint32_t, CoveredHash> found_as = {{Covered{}, 0}};
  waiting[0].push_back(0);
  CoverGraph graph;
  std::vector<uint32_t> number(1);
  for (size_t next = 0; next <= problem.node_count; ++next) {
    for (const uint32_t at : waiting[next]) {
      number[at] = static_cast<uint32_t>(graph.covered_.size());
      graph.covered_.push_back(found[at]);
      graph.first_edge_.push_back(graph.edges_.size());
      if (next == problem.node_count) continue;
      for (const uint32_t c : by_first[next]) {
        const IndexSet& inside = problem.candidates[c].inside;
        if (inside.Intersects(found[at].tail)) continue;
        Covered after = After(found[at], inside);
        const auto [place, is_new] = found_as.try_emplace(after, static_cast<uint32_t>(found.size()));
        if (is_new) {
          if (found.size() == most_covered) return std::nullopt;
          waiting[after.next].push_back(place->second);
          found.push_back(std::move(after));
          number.push_back(0);
        }
        graph.edges_.push_back({place->second, c});
      }
    }
  }
  graph.first_edge_.push_back(graph.edges_.size());
  for (Edge& edge : graph.edges_) edge.to = number[edge.to];
  return graph;
}

const CoverGraph* SharedCoverGraph::Of(const SearchProblem& problem, size_t most_covered) {
  if (!is_needed_) graph_ = CoverGraph::Build(problem, most_covered);
  is_needed_ = true;
  return graph_ ? &*graph_ : nullptr;
}

}  // namespace collage
