#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// Calls `visit(const Expr&)` for each direct sub-expression, in the order of Children, without copying.
template <class Visitor>
void ForEachChild(const ExprNode& node, Visitor&& visit) {
  if (const Call* call = node.As<Call>()) {
    visit(call->callee);
    for (const Expr& arg : call->args) visit(arg);
  } else if (const Tuple* tuple = node.As<Tuple>()) {
    for (const Expr& field : tuple->fields) visit(field);
  } else if (const TupleGetItem* item = node.As<TupleGetItem>()) {
    visit(item->tuple);
  } else if (const Let* let = node.As<Let>()) {
    visit(let->variable);
    visit(let->value);
    visit(let->body);
  } else if (const If* branch = node.As<If>()) {
    visit(branch->condition);
    visit(branch->then_branch);
    visit(branch->else_branch);
  } else if (const Function* function = node.As<Function>()) {
    for (const Expr& parameter : function->parameters) visit(parameter);
    visit(function->body);
  }
}

/// Visits every expression reachable from `root` once, children first and in evaluation order, operators, variables and the
/// insides of functions included. The references stay valid as long as `root`. No recursion.
void PostOrder(const Expr& root, const std::function<void(const Expr&)>& visit);

enum class CallOrder { kCalleeFirst, kCalleeLast };

/// The expressions of PostOrder as a list; pointers into the expressions that hold them. With kCalleeLast the callee of a call
/// comes after the arguments: a function literal then stands next to its call, as a reader wants it.
std::vector<const Expr*> PostOrderList(const Expr& root, CallOrder order = CallOrder::kCalleeFirst);

/// How often each expression is referred to inside `root` (an argument given twice counts twice; the root counts once).
std::unordered_map<const ExprNode*, size_t> CountUses(const Expr& root);

/// What replaces `expr`, whose children have been replaced already; `original` is what stood there before. Give `expr` back
/// to leave it alone.
using Rewriter = std::function<Result<Expr>(const Expr& original, const Expr& expr)>;

/// Rebuilds `root` bottom-up, each expression once, so that sharing survives; expressions of which nothing changed are
/// shared with the old tree. Where `enter` is given and answers false for an expression, its inside is left as it is (but the
/// expression itself is offered to `rewrite`). The variable of a let is offered after its value, and a let whose variable is
/// replaced by its value, or by anything that is no variable, disappears. Errors come from `rewrite` or from the types of a rebuilt parent.
/// No recursion.
Result<Expr> Rewrite(const Expr& root, const Rewriter& rewrite, const std::function<bool(const Expr&)>& enter = {});

/// `root` with the expressions that are keys of `replacements` replaced (outermost first: what replaces is not entered).
Result<Expr> Substitute(const Expr& root, const std::unordered_map<const ExprNode*, Expr>& replacements);

}  // namespace collage
