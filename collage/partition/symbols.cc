#include "collage/partition/symbols.h"

#include "collage/ir/visit.h"

namespace collage {

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

}  // namespace collage
