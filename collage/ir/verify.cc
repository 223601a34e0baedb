#include "collage/ir/verify.h"

#include <unordered_map>
#include <unordered_set>

#include "collage/ir/print.h"
#include "collage/ir/scope_tree.h"
#include "collage/ir/visit.h"

namespace collage {
namespace {

class Verifier {
 public:
  explicit Verifier(const IRModule& module) : module_(module) {}

  Status Run() {
    if (!module_.Find("main")) return Fail("the module has no function @main");
    for (const auto& [name, function] : module_.functions()) COLLAGE_TRY_STATUS(VerifyFunction(name, function));
    return {};
  }

 private:
  Status VerifyFunction(const std::string& name, const Expr& function) {
    name_ = name;
    root_ = function;
    const std::vector<const Expr*> order = PostOrderList(function);
    const ScopeTree tree(function, ScopeTree::Purpose::kVerifying);
    COLLAGE_TRY_STATUS(VerifyBindings(order, tree));
    for (const Expr* expr : order) {
      COLLAGE_TRY_STATUS(VerifyType(*expr));
      if (const Function* literal = (*expr)->As<Function>()) COLLAGE_TRY_STATUS(VerifyAttributes(*expr, *literal));
    }
    return {};
  }

  // "@main: %3 = add(...): message", by the names of the printed form.
  tl::unexpected<Error> ErrorAt(const Expr& expr, const std::string& message) const {
    const PrintedText printed = PrintExpr(root_);
    const auto at = printed.names.find(expr.get());
    std::string place = "@" + name_;
    if (at != printed.names.end()) place += ": " + at->second;
    if (const OpDef* op = CalledOp(expr)) place += " (" + op->name + ")";
    if (!expr->origin().OnnxNodes().empty()) place += " of " + expr->origin().ToString();
    return Fail(place + ": " + message);
  }

  Status Bind(const Expr& variable, size_t scope, std::unordered_map<const ExprNode*, size_t>& binders) {
    if (!variable->As<Var>()) return ErrorAt(variable, "something that is not a variable is bound");
    if (!bound_.insert(variable.get()).second) return ErrorAt(variable, "this variable is bound twice");
    binders.emplace(variable.get(), scope);
    return {};
  }

  Status VerifyBindings(const std::vector<const Expr*>& order, const ScopeTree& tree) {
    std::unordered_map<const ExprNode*, size_t> binders;
    for (const Expr* expr : order) {
      if (const Let* let = (*expr)->As<Let>()) COLLAGE_TRY_STATUS(Bind(let->variable, tree.OpenedBy(expr->get()), binders));
      if (const Function* function = (*expr)->As<Function>()) {
        for (const Expr& parameter : function->parameters) COLLAGE_TRY_STATUS(Bind(parameter, tree.OpenedBy(expr->get()), binders));
      }
    }
    for (const Expr* expr : order) {
      if (!(*expr)->As<Var>()) continue;
      const auto at = binders.find(expr->get());
      if (at == binders.end()) return ErrorAt(*expr, "this variable is not bound");
      if (tree.ScopeOf(*expr) != at->second) return ErrorAt(*expr, "this variable is used where it is not visible");
    }
    return {};
  }

  static Result<Expr> Rebuilt(const Expr& expr) {
    if (const Call* call = expr->As<Call>()) return MakeCall(call->callee, call->args, call->attributes);
    if (const Tuple* tuple = expr->As<Tuple>()) return MakeTuple(tuple->fields);
    if (const TupleGetItem* item = expr->As<TupleGetItem>()) return MakeTupleGetItem(item->tuple, item->index);
    if (const Let* let = expr->As<Let>()) return MakeLet(let->variable, let->value, let->body);
    if (const If* branch = expr->As<If>()) return MakeIf(branch->condition, branch->then_branch, branch->else_branch);
    if (const Function* function = expr->As<Function>())
      return MakeFunction(function->parameters, function->body, {}, function->result_type);
    if (const Constant* constant = expr->As<Constant>()) return MakeConstant(constant->value);
    return expr;
  }

  Status VerifyType(const Expr& expr) {
    if (const GlobalVar* global = expr->As<GlobalVar>()) {
      const Expr function = module_.Find(global->name);
      if (!function) return ErrorAt(expr, "@" + global->name + " is not in the module");
      if (function->type() == expr->type()) return {};
      return ErrorAt(expr, "@" + global->name + " has type " + ToString(function->type()) + " but is used as " + ToString(expr->type()));
    }
    const Result<Expr> rebuilt = Rebuilt(expr);
    if (!rebuilt) return ErrorAt(expr, rebuilt.error().message);
    if ((*rebuilt)->type() == expr->type()) return {};
    return ErrorAt(expr, "has type " + ToString(expr->type()) + ", expected " + ToString((*rebuilt)->type()));
  }

  Status VerifyAttributes(const Expr& expr, const Function& function) {
    const Attributes& attributes = function.attributes;
    const bool primitive = attributes.Int("Primitive", 0).value_or(0) != 0;
    if (primitive || attributes.Has("Composite")) COLLAGE_TRY_STATUS(VerifyClosed(expr));
    if (attributes.Has("Compiler") && (!primitive || !attributes.Has("global_symbol"))) {
      return ErrorAt(expr, "a function with \"Compiler\" needs Primitive=1 and a \"global_symbol\"");
    }
    if (const AttributeValue* symbol = attributes.Find("global_symbol")) {
      if (!symbol->AsString()) return ErrorAt(expr, "\"global_symbol\" is " + ToString(*symbol) + ", expected a string");
      const auto [at, inserted] = symbols_.emplace(*symbol->AsString(), expr.get());
      if (!inserted && at->second != expr.get()) return ErrorAt(expr, "the global_symbol " + ToString(*symbol) + " is taken");
    }
    return {};
  }

  Status VerifyClosed(const Expr& function) {
    std::unordered_set<const ExprNode*> bound;
    const std::vector<const Expr*> order = PostOrderList(function);
    for (const Expr* expr : order) {
      if (const Let* let = (*expr)->As<Let>()) bound.insert(let->variable.get());
      if (const Function* inner = (*expr)->As<Function>()) {
        for (const Expr& parameter : inner->parameters) bound.insert(parameter.get());
      }
    }
    for (const Expr* expr : order) {
      const Var* var = (*expr)->As<Var>();
      if (!var || bound.contains(expr->get())) continue;
      return ErrorAt(function, "a Primitive or Composite function uses %" + var->name + ", which is bound outside of it");
    }
    return {};
  }

  const IRModule& module_;
  std::string name_;
  Expr root_;
  std::unordered_set<const ExprNode*> bound_;  // in the whole module
  std::unordered_map<std::string, const ExprNode*> symbols_;
};

}  // namespace

Status Verify(const IRModule& module) { return Verifier(module).Run(); }

}  // namespace collage
