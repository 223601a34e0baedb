#include "collage/dataflow/extraction.h"
#include "collage/partition/classic_flow.h"
#include "collage/partition/symbols.h"
#include "collage/pattern/check.h"

namespace collage {

Result<IRModule> PartitionRegions(const IRModule& module, const std::vector<FunctionRegions>& regions,
                                  const std::vector<std::string>& backends, const PartitionOptions& options) {
  NameSupply names;
  ReserveSymbols(module, names);
  IRModule result = module;
  for (const FunctionRegions& function : regions) {
    const DataflowGraph& graph = *function.graph;
    std::vector<NestedSubGraph> partitions;
    for (const BackendRegion& region : function.regions) {
      const std::string& backend = backends[region.backend];
      SubGraph sub_graph(graph, region.nodes, region.composites);
      const std::string symbol = names.Fresh(SymbolOf(graph, sub_graph, backend));
      partitions.push_back({std::move(sub_graph), {{"Primitive", AttributeValue(1)}, {"Compiler", backend}, {"global_symbol", symbol}}});
    }
    Result<Expr> rewritten = RewriteFunction(graph, partitions, {.bind_constants = options.bind_constants});
    if (!rewritten) return Fail(rewritten.error().At("@" + function.function));
    result.Set(function.function, *std::move(rewritten));
  }
  return result;
}

std::vector<std::string> OrdinaryFunctions(const IRModule& module) {
  std::vector<std::string> names;
  for (const auto& [name, function] : module.functions()) {
    if (!IsAtomicFunction(function)) names.push_back(name);
  }
  return names;
}

Result<IRModule> PartitionClassic(const IRModule& module, const std::vector<NamedRules>& backends, const PartitionOptions& options) {
  // Composites first, in the order of the tables: a backend is then asked for those that its labels name.
  std::vector<PatternRule> table;
  std::vector<BackendRules> without_patterns;
  std::vector<NamedRules> asked;
  std::vector<std::string> names;
  without_patterns.reserve(backends.size());
  for (const NamedRules& backend : backends) {
    if (const Status checked = CheckPatterns(backend.rules->patterns); !checked) return Fail(checked.error().At("backend " + backend.name));
    table.insert(table.end(), backend.rules->patterns.begin(), backend.rules->patterns.end());
    BackendRules& rules = without_patterns.emplace_back(*backend.rules);
    rules.patterns.clear();
    asked.push_back({backend.name, &rules});
    names.push_back(backend.name);
  }
  const std::vector<std::string> functions = OrdinaryFunctions(module);
  std::vector<DataflowGraph> graphs;
  graphs.reserve(functions.size());
  std::vector<FunctionRegions> regions;
  for (const std::string& name : functions) {
    const DataflowGraph& graph = graphs.emplace_back(module.Find(name));
    const std::vector<SupportedRegion> supported = Annotate(graph, asked, FindComposites(graph, table));
    regions.push_back({name, &graph, MergeAssigned(graph, Deconflict(graph, supported, backends.size()), backends.size())});
  }
  return RunPartitionPasses(COLLAGE_TRY(PartitionRegions(module, regions, names, options)), backends);
}

}  // namespace collage
