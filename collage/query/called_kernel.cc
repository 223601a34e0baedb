#include "collage/query/called_kernel.h"

#include <algorithm>

#include "collage/ir/visit.h"
#include "collage/query/sub_graph_json.h"

namespace collage {

std::string TextOf(const Function& function, const char* attribute) {
  const AttributeValue* text = function.attributes.Find(attribute);
  return text && text->AsString() ? *text->AsString() : std::string();
}

const Function* CalledKernel(const IRModule& module, const DataflowGraph& graph, PostDfsIndex node) {
  const Call* call = graph[node].expr->As<Call>();
  if (!call) return nullptr;
  Expr callee = call->callee;
  if (const GlobalVar* global = callee->As<GlobalVar>()) callee = module.Find(global->name);
  if (const PostDfsIndex variable = callee && callee->As<Var>() ? graph.Find(callee) : DataflowGraph::kNone;
      variable != DataflowGraph::kNone && !graph[variable].inputs.empty()) {
    callee = graph[graph[variable].inputs[0]].expr;
  }
  return callee && IsAtomicFunction(callee) ? callee->As<Function>() : nullptr;
}

Json CalledComposite(const NamedFunction& function, PostDfsIndex node, const Function& kernel) {
  std::vector<std::string> operators;
  PostOrder(kernel.body, [&](const Expr& expr) {
    if (const OpDef* op = CalledOp(expr)) operators.push_back(op->name);
  });
  std::sort(operators.begin(), operators.end());
  const SubGraph call(function.graph(), IndexSet({node}));
  return {{"label", TextOf(kernel, "Composite")},
          {"members", function.NamesOf(call.inside())},
          {"operators", operators},
          {"inputs", function.NamesOf(call.input())},
          {"output", function.NameOf(node)}};
}

}  // namespace collage
