#include "collage/driver/candidates.h"

#include "collage/pattern/matcher.h"
#include "collage/support/name_supply.h"

namespace collage {
namespace {

Result<void> Add(const DataflowGraph& graph, SubGraph sub_graph, size_t backend, std::vector<PricedCandidate>& out) {
  if (!sub_graph.IsValid(graph, {1, 0, false})) return {};
  Result<ExtractedFunction> extracted = ExtractFunction(graph, sub_graph);
  if (!extracted) return {};
  out.push_back({std::move(sub_graph), std::move(*extracted), backend, {}, true});
  return {};
}

}  // namespace

Result<std::vector<PricedCandidate>> FindCandidates(const DataflowGraph& graph, const std::vector<PlacementTarget>& targets) {
  std::vector<PricedCandidate> out;
  for (size_t t = 0; t < targets.size(); ++t) {
    const BackendRules& rules = targets[t].rules;
    for (const PatternRule& rule : rules.patterns) {
      for (PatternMatch& match : AllMatches(graph, rule.pattern)) {
        if (rule.check && !rule.check(match.match).accepted) continue;
        SubGraph sub(graph, match.inside);
        (void)Add(graph, sub.WithAttributes(graph, {{"Composite", rule.label}}), t, out);
      }
    }
    if (rules.style == BackendRules::Style::kPattern) continue;
    IndexSet all;
    for (PostDfsIndex i = 0; i < graph.size(); ++i) {
      if (!CalledOp(graph[i].expr) || !rules.supports(graph[i].expr).accepted) continue;
      std::vector<size_t> inside = {i};
      for (PostDfsIndex in : graph[i].inputs)
        if (graph[in].expr->As<Tuple>()) inside.push_back(in);
      for (size_t x : inside) all.Add(x);
      (void)Add(graph, SubGraph(graph, IndexSet(inside)), t, out);
    }
    if (rules.style == BackendRules::Style::kPredicate && !targets[t].is_fallback) (void)Add(graph, SubGraph(graph, all), t, out);
  }
  for (PostDfsIndex i = 0; i < graph.size(); ++i) {
    const OpDef* op = CalledOp(graph[i].expr);
    if (!op || !op->is_view) continue;
    SubGraph sub(graph, IndexSet({i}));
    Result<ExtractedFunction> extracted = ExtractFunction(graph, sub);
    if (!extracted) continue;
    out.push_back({sub, *extracted, 0, {{{"view", {Layout()}, {Layout()}}, Cost(), {}, {}}}, false});
  }
  return out;
}

std::vector<std::string> PartitionSymbols(const DataflowGraph& graph, const std::vector<PricedCandidate>& candidates,
                                          const std::vector<SearchChoice>& choices) {
  NameSupply names;
  std::vector<std::string> symbols;
  for (const SearchChoice& choice : choices) {
    const PricedCandidate& c = candidates[choice.candidate];
    symbols.push_back(c.is_partition ? names.Fresh("collage_" + c.variants[choice.variant].key.backend + "_" + c.sub_graph.Label(graph))
                                     : "");
  }
  return symbols;
}

Result<IRModule> ApplyChoices(const DataflowGraph& graph, const std::vector<PricedCandidate>& candidates,
                              const std::vector<SearchChoice>& choices) {
  std::vector<NestedSubGraph> nested;
  const auto symbols = PartitionSymbols(graph, candidates, choices);
  for (size_t i = 0; i < choices.size(); ++i) {
    const PricedCandidate& c = candidates[choices[i].candidate];
    if (!c.is_partition) continue;
    nested.push_back({c.sub_graph,
                      {{"Primitive", 1},
                       {"Compiler", c.variants[choices[i].variant].key.backend},
                       {"global_symbol", symbols[i]},
                       {"Variant", c.variants[choices[i].variant].variant.name}}});
  }
  return IRModule::FromMain(COLLAGE_TRY(RewriteFunction(graph, nested)));
}

}  // namespace collage
