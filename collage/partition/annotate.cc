#include "collage/partition/classic_flow.h"
#include "collage/partition/valid_matches.h"
#include "collage/pattern/fusion.h"

namespace collage {
namespace {

/// The label of a composite, or nothing.
std::string Label(const Attributes& attributes) {
  const AttributeValue* label = attributes.Find("Composite");
  return label && label->AsString() ? *label->AsString() : std::string();
}

std::string LabelOfCall(const Expr& expr) {
  const Call* call = expr->As<Call>();
  const Function* callee = call ? call->callee->As<Function>() : nullptr;
  return callee ? Label(callee->attributes) : std::string();
}

bool IsNamedBy(const std::string& backend, const std::string& label) { return label.starts_with(backend + "."); }

}  // namespace

std::vector<SupportedRegion> Annotate(const DataflowGraph& graph, const std::vector<NamedRules>& backends,
                                      const std::vector<NestedSubGraph>& composites) {
  std::vector<bool> hidden(graph.size(), false);
  for (const NestedSubGraph& composite : composites) {
    composite.sub_graph.inside().ForEach([&](PostDfsIndex node) { hidden[node] = true; });
  }
  std::vector<SupportedRegion> supported;
  for (size_t i = 0; i < backends.size(); ++i) {
    const auto& [name, rules] = backends[i];
    for (const PatternRule& rule : rules->patterns) {
      for (PatternMatch& match : ValidMatches(graph, rule)) {
        bool clear = true;
        match.inside.ForEach([&](PostDfsIndex node) { clear = clear && !hidden[node]; });
        if (!clear) continue;
        std::string label = collage::LabelOf(rule, graph, match.inside);
        supported.push_back({i, std::move(match.inside), {{"Composite", std::move(label)}}});
      }
    }
    for (const NestedSubGraph& composite : composites) {
      if (IsNamedBy(name, Label(composite.attributes))) supported.push_back({i, composite.sub_graph.inside(), composite.attributes});
    }
    for (PostDfsIndex node = 0; node < graph.size(); ++node) {
      const Expr& expr = graph[node].expr;
      if (hidden[node]) continue;
      const bool by_predicate = CalledOp(expr) && rules->supports && rules->supports(expr).accepted;
      if (by_predicate || IsNamedBy(name, LabelOfCall(expr))) supported.push_back({i, IndexSet({node}), {}});
    }
  }
  for (const NestedSubGraph& composite : composites) {
    supported.push_back({backends.size(), composite.sub_graph.inside(), composite.attributes});
  }
  for (PostDfsIndex node = 0; node < graph.size(); ++node) {
    if (graph[node].expr->As<Call>() && !hidden[node]) supported.push_back({backends.size(), IndexSet({node}), {}});
  }
  return supported;
}

}  // namespace collage
