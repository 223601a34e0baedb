#include "collage/dataflow/extraction.h"
#include "collage/ir/visit.h"
#include "collage/partition/cover.h"
#include "collage/support/name_supply.h"

namespace collage {
namespace {

void ReserveSymbols(const IRModule& module, NameSupply& names) {
  for (const auto& [name, function] : module.functions()) {
    names.Reserve(name);
    PostOrder(function, [&](const Expr& expr) {
      const Function* literal = expr->As<Function>();
      const AttributeValue* symbol = literal ? literal->attributes.Find("global_symbol") : nullptr;
      if (symbol && symbol->AsString()) names.Reserve(*symbol->AsString());
    });
  }
}

std::string SymbolOf(const DataflowGraph& graph, const SubGraph& sub_graph, const std::string& compiler) {
  std::string label = sub_graph.Label(graph);
  // A composite's label names its backend already: "dnnl.conv2d_relu".
  if (label.starts_with(compiler + "_")) label.erase(0, compiler.size() + 1);
  return "collage_" + compiler + "_" + label;
}

}  // namespace

Result<IRModule> ApplyCover(const IRModule& module, const DataflowGraph& graph, const Cover& cover) {
  if (module.MainExpr() != graph.function()) return Fail("plan: the indexed function is not @main of the module");
  NameSupply names;
  ReserveSymbols(module, names);
  std::vector<NestedSubGraph> partitions;
  for (const ChosenPartition& chosen : cover) {
    if (chosen.candidate.spec->is_host) continue;
    for (NestedSubGraph nested : chosen.candidate.sub_graph.nested()) {
      const AttributeValue* compiler = nested.attributes.Find("Compiler");
      if (compiler && compiler->AsString()) {
        nested.attributes.Set("global_symbol", names.Fresh(SymbolOf(graph, nested.sub_graph, *compiler->AsString())));
      }
      for (const auto& [name, value] : chosen.attributes.entries()) nested.attributes.Set(name, value);
      partitions.push_back(std::move(nested));
    }
  }
  IRModule result = module;
  result.Set("main", COLLAGE_TRY(RewriteFunction(graph, partitions)));
  return result;
}

}  // namespace collage
