#include "collage/partition/fuse.h"

#include "collage/candidate/regions.h"
#include "collage/dataflow/extraction.h"
#include "collage/partition/classic_flow.h"

namespace collage {

std::vector<IndexSet> FindFusionGroups(const DataflowGraph& graph, const std::vector<bool>& may_fuse, const FuseOptions& options) {
  if (options.level > 0) return FusionGroups(graph, may_fuse, options.max_operators);
  std::vector<IndexSet> groups;
  for (PostDfsIndex node = 0; node < graph.size(); ++node) {
    const OpDef* op = graph[node].op;
    if (op && may_fuse[node] && op->kind != OpKind::kOpaque) groups.emplace_back(std::vector<size_t>{node});
  }
  return groups;
}

std::vector<IndexSet> FindFusionGroups(const DataflowGraph& graph, const FuseOptions& options) {
  return FindFusionGroups(graph, std::vector<bool>(graph.size(), true), options);
}

Result<IRModule> FuseOperators(const IRModule& module, const FuseOptions& options) {
  IRModule result = module;
  for (const std::string& name : OrdinaryFunctions(module)) {
    const DataflowGraph graph(module.Find(name));
    std::vector<NestedSubGraph> kernels;
    for (IndexSet& group : FindFusionGroups(graph, options)) {
      kernels.push_back({SubGraph(graph, std::move(group)), {{"Primitive", AttributeValue(1)}}});
    }
    Result<Expr> fused = RewriteFunction(graph, kernels, {.bind_constants = options.bind_constants});
    if (!fused) return Fail(fused.error().At("@" + name));
    result.Set(name, *std::move(fused));
  }
  return result;
}

}  // namespace collage
