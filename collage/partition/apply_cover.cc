#include "collage/dataflow/contraction.h"
#include "collage/dataflow/extraction.h"
#include "collage/partition/cover.h"
#include "collage/partition/symbols.h"

namespace collage {
namespace {

/// What is no name and no copy: constants and function literals are written into every partition that uses them.
bool IsOwned(const DataflowGraph::Node& node) {
  return !node.Is<Constant>() && !node.Is<Var>() && !node.Is<GlobalVar>() && !node.Is<Function>();
}

std::string Describe(const DataflowGraph& graph, PostDfsIndex node) {
  const OpDef* op = graph[node].op;
  return (op ? op->name : "a value") + " (node " + std::to_string(node) + ")";
}

std::string Describe(const DataflowGraph& graph, const ChosenPartition& chosen) {
  return "the partition of \"" + chosen.candidate.spec->name + "\" that begins with " +
         Describe(graph, chosen.candidate.sub_graph.inside().First());
}

/// Whether the partitions are disjoint, but for constants and function literals, and no cycle remains once each is contracted to one
/// node.
Status CheckCover(const DataflowGraph& graph, const Cover& cover) {
  constexpr size_t kNobody = static_cast<size_t>(-1);
  std::vector<size_t> owner(graph.size(), kNobody);
  std::vector<IndexSet> owned;
  for (size_t i = 0; i < cover.size(); ++i) {
    PostDfsIndex shared = DataflowGraph::kNone;
    owned.emplace_back();
    cover[i].candidate.sub_graph.inside().ForEach([&](PostDfsIndex node) {
      if (!IsOwned(graph[node])) return;
      if (owner[node] != kNobody) shared = node;
      if (shared == node) return;
      owner[node] = i;
      owned.back().Add(node);
    });
    if (shared == DataflowGraph::kNone) continue;
    return Fail("plan: " + Describe(graph, shared) + " is in two partitions: " + Describe(graph, cover[owner[shared]]) + ", and " +
                Describe(graph, cover[i]) + "; expected disjoint ones");
  }
  const auto is_acyclic = [&](size_t count) {
    std::vector<const IndexSet*> sets;
    for (size_t i = 0; i < count; ++i) {
      if (!owned[i].Empty()) sets.push_back(&owned[i]);
    }
    return ContractionIsAcyclic(graph, sets);
  };
  if (is_acyclic(cover.size())) return {};
  // The first that closes a cycle: fewer partitions have no more cycles.
  size_t acyclic = 0;
  size_t cyclic = cover.size();
  while (cyclic - acyclic > 1) {
    const size_t middle = acyclic + (cyclic - acyclic) / 2;
    (is_acyclic(middle) ? acyclic : cyclic) = middle;
  }
  return Fail("plan: " + Describe(graph, cover[acyclic]) +
              " depends on itself in a cycle through what lies outside; expected a cover without cycles");
}

}  // namespace

Result<IRModule> ApplyCover(const IRModule& module, const DataflowGraph& graph, const Cover& cover) {
  if (module.MainExpr() != graph.function()) return Fail("plan: the indexed function is not @main of the module");
  COLLAGE_TRY_STATUS(CheckCover(graph, cover));
  NameSupply names;
  ReserveSymbols(module, names);
  std::vector<NestedSubGraph> partitions;
  for (const ChosenPartition& chosen : cover) {
    for (NestedSubGraph nested : chosen.candidate.sub_graph.nested()) {
      const AttributeValue* compiler = nested.attributes.Find("Compiler");
      const AttributeValue* wanted = chosen.attributes.Find("global_symbol");
      if (wanted && wanted->AsString()) {
        nested.attributes.Set("global_symbol", names.Fresh(*wanted->AsString()));
      } else if (compiler && compiler->AsString()) {
        nested.attributes.Set("global_symbol", names.Fresh(SymbolOf(graph, nested.sub_graph, *compiler->AsString())));
      }
      for (const auto& [name, value] : chosen.attributes.entries()) {
        if (name != "global_symbol") nested.attributes.Set(name, value);
      }
      partitions.push_back(std::move(nested));
    }
  }
  IRModule result = module;
  result.Set("main", COLLAGE_TRY(RewriteFunction(graph, partitions)));
  return result;
}

}  // namespace collage
