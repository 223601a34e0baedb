#include "collage/partition/classic_flow.h"

#include <algorithm>
#include <map>

#include "collage/dataflow/contraction.h"
#include "collage/dataflow/extraction.h"
#include "collage/pattern/matcher.h"

namespace collage {
namespace {

std::string CompositeLabel(const Expr& expr) {
  const Call* call = expr->As<Call>();
  const Function* callee = call ? call->callee->As<Function>() : nullptr;
  const AttributeValue* label = callee ? callee->attributes.Find("Composite") : nullptr;
  return label && label->AsString() ? *label->AsString() : std::string();
}

/// The matches of a rule that its check accepts and that can be one function of one result.
std::vector<PatternMatch> ValidMatches(const DataflowGraph& graph, const PatternRule& rule) {
  std::vector<PatternMatch> matches = AllMatches(graph, rule.pattern);
  std::erase_if(matches, [&](const PatternMatch& match) {
    return (rule.check && !rule.check(match.match).accepted) || !SubGraph(graph, match.inside).IsValid(graph, {.max_exits = 1});
  });
  return matches;
}

}  // namespace

Result<Expr> MergeComposite(const Expr& function, const std::vector<PatternRule>& table) {
  const DataflowGraph graph(function);
  ContractedGraph contracted(graph);
  IndexSet taken;
  std::vector<NestedSubGraph> composites;
  for (const PatternRule& rule : table) {
    std::vector<PatternMatch> matches = ValidMatches(graph, rule);
    std::stable_sort(matches.begin(), matches.end(), [&](const PatternMatch& a, const PatternMatch& b) {
      const PostDfsIndex root_a = graph.IndexOf(a.match.root);
      const PostDfsIndex root_b = graph.IndexOf(b.match.root);
      return root_a != root_b ? root_a > root_b : a.inside.Count() > b.inside.Count();
    });
    for (const PatternMatch& match : matches) {
      if (taken.Intersects(match.inside) || !contracted.TryMerge(match.inside.ToVector())) continue;
      taken |= match.inside;
      composites.push_back({SubGraph(graph, match.inside), {{"Composite", rule.label}}});
    }
  }
  return RewriteFunction(graph, composites, {.bind_constants = false});
}

std::vector<SupportedRegion> Annotate(const DataflowGraph& graph, const std::vector<NamedRules>& backends) {
  std::vector<SupportedRegion> supported;
  for (size_t i = 0; i < backends.size(); ++i) {
    for (const PatternRule& rule : backends[i].rules->patterns) {
      for (PatternMatch& match : ValidMatches(graph, rule)) {
        supported.push_back({i, std::move(match.inside), {{"Composite", rule.label}}});
      }
    }
    for (PostDfsIndex node = 0; node < graph.size(); ++node) {
      const Expr& expr = graph[node].expr;
      const bool by_predicate = CalledOp(expr) && backends[i].rules->supports && backends[i].rules->supports(expr).accepted;
      if (by_predicate || CompositeLabel(expr).starts_with(backends[i].name + ".")) supported.push_back({i, IndexSet({node}), {}});
    }
  }
  return supported;
}

std::vector<SupportedRegion> Deconflict(const DataflowGraph& graph, std::vector<SupportedRegion> supported, const PreferRegion& prefer) {
  const PreferRegion default_order = [](const SupportedRegion& a, const SupportedRegion& b) {
    if (a.backend != b.backend) return a.backend < b.backend;
    const size_t count_a = a.nodes.Count();
    const size_t count_b = b.nodes.Count();
    return count_a != count_b ? count_a > count_b : a.nodes < b.nodes;
  };
  std::stable_sort(supported.begin(), supported.end(), prefer ? prefer : default_order);
  ContractedGraph contracted(graph);
  IndexSet taken;
  std::vector<SupportedRegion> assigned;
  for (SupportedRegion& region : supported) {
    if (taken.Intersects(region.nodes) || !contracted.TryMerge(region.nodes.ToVector())) continue;
    taken |= region.nodes;
    assigned.push_back(std::move(region));
  }
  std::sort(assigned.begin(), assigned.end(),
            [](const SupportedRegion& a, const SupportedRegion& b) { return a.nodes.First() < b.nodes.First(); });
  return assigned;
}

Cover MergeSupported(const DataflowGraph& graph, const std::vector<SupportedRegion>& assigned, const std::vector<NamedRules>& backends) {
  std::vector<SpecPointer> specs;
  for (const NamedRules& backend : backends) {
    const Target target{DeviceKind::kCpu, {{"compiler", backend.name}}};
    specs.push_back(std::make_shared<const PartitionSpec>(PartitionSpec{backend.name, {target}, nullptr}));
  }
  std::vector<Region> parts;
  std::map<PostDfsIndex, const SupportedRegion*> by_first;
  for (const SupportedRegion& region : assigned) {
    parts.push_back({region.backend, region.nodes});
    by_first[region.nodes.First()] = &region;
  }
  Cover cover;
  for (Region& region : MergeRegions(graph, parts, true)) {
    std::vector<NestedSubGraph> composites;
    region.nodes.ForEach([&](PostDfsIndex node) {
      const auto part = by_first.find(node);
      if (part == by_first.end() || part->second->composite.Empty()) return;
      composites.push_back({SubGraph(graph, part->second->nodes), part->second->composite});
    });
    const SubGraph flat(graph, std::move(region.nodes), std::move(composites));
    const Attributes attributes = {{"Primitive", AttributeValue(1)}, {"Compiler", backends[region.owner].name}};
    cover.push_back({{flat.WithAttributes(graph, attributes), specs[region.owner]}, {}});
  }
  return cover;
}

Result<IRModule> PartitionClassic(const IRModule& module, const std::vector<NamedRules>& backends) {
  const DataflowGraph graph(module.MainExpr());
  const Cover cover = MergeSupported(graph, Deconflict(graph, Annotate(graph, backends)), backends);
  return ApplyCover(module, graph, cover);
}

}  // namespace collage
