#include <algorithm>

#include "collage/dataflow/contraction.h"
#include "collage/dataflow/extraction.h"
#include "collage/partition/classic_flow.h"
#include "collage/partition/valid_matches.h"
#include "collage/pattern/check.h"
#include "collage/pattern/fusion.h"

namespace collage {

std::vector<NestedSubGraph> FindComposites(const DataflowGraph& graph, const std::vector<PatternRule>& table) {
  ContractedGraph contracted(graph);
  std::vector<bool> taken(graph.size(), false);
  std::vector<NestedSubGraph> composites;
  for (const PatternRule& rule : table) {
    std::vector<PatternMatch> matches = ValidMatches(graph, rule);
    std::stable_sort(matches.begin(), matches.end(), [&](const PatternMatch& a, const PatternMatch& b) {
      const PostDfsIndex root_a = graph.IndexOf(a.match.root);
      const PostDfsIndex root_b = graph.IndexOf(b.match.root);
      return root_a != root_b ? root_a > root_b : a.inside.Count() > b.inside.Count();
    });
    for (const PatternMatch& match : matches) {
      const std::vector<PostDfsIndex> members = match.inside.ToVector();
      if (std::any_of(members.begin(), members.end(), [&](PostDfsIndex node) { return taken[node]; })) continue;
      if (!contracted.TryMerge(members)) continue;
      for (const PostDfsIndex node : members) taken[node] = true;
      composites.push_back({SubGraph(graph, match.inside), {{"Composite", LabelOf(rule, graph, match.inside)}}});
    }
  }
  std::sort(composites.begin(), composites.end(),
            [](const NestedSubGraph& a, const NestedSubGraph& b) { return a.sub_graph.inside().First() < b.sub_graph.inside().First(); });
  return composites;
}

Result<Expr> MergeComposite(const Expr& function, const std::vector<PatternRule>& table) {
  COLLAGE_TRY_STATUS(CheckPatterns(table));
  const DataflowGraph graph(function);
  return RewriteFunction(graph, FindComposites(graph, table), {.bind_constants = false});
}

std::vector<PatternMatch> ValidMatches(const DataflowGraph& graph, const PatternRule& rule) {
  std::vector<PatternMatch> matches;
  ForEachMatch(graph, rule, [&](PatternMatch match) { matches.push_back(std::move(match)); });
  const auto computes = [&](const IndexSet& inside) {
    bool calls = false;
    inside.ForEach([&](PostDfsIndex node) { calls = calls || graph[node].expr->As<Call>(); });
    return calls;
  };
  std::erase_if(matches, [&](const PatternMatch& match) {
    return !computes(match.inside) || (rule.check && !rule.check(match.match).accepted) ||
           !SubGraph(graph, match.inside).IsValid(graph, {.max_exits = 1});
  });
  return matches;
}

}  // namespace collage
