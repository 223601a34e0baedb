#include "collage/dataflow/extraction.h"
#include "collage/partition/cover.h"
#include "collage/partition/symbols.h"

namespace collage {

Result<IRModule> ApplyCover(const IRModule& module, const DataflowGraph& graph, const Cover& cover) {
  if (module.MainExpr() != graph.function()) return Fail("plan: the indexed function is not @main of the module");
  NameSupply names;
  ReserveSymbols(module, names);
  std::vector<NestedSubGraph> partitions;
  for (const ChosenPartition& chosen : cover) {
    if (chosen.candidate.spec->is_host) continue;
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
