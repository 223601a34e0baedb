#include "collage/transform/inline_closures.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "collage/ir/visit.h"
#include "collage/support/name_supply.h"
#include "collage/transform/function_pass.h"

namespace collage {
namespace {

// Beside those that were there: as many as iterations of a loop are written out in (onnx/iteration.cc), which still compile.
constexpr size_t kMostNodes = 50'000;

/// A function literal that is no kernel.
bool IsPlainLiteral(const Expr& expr) { return expr->As<Function>() && MayEnter(expr); }

/// Visits what stands outside of kernels.
void VisitOutside(const Expr& function, const std::function<void(const Expr&)>& visit) {
  const auto keep = [&](const Expr& expr, const Expr&) -> Result<Expr> {
    visit(expr);
    return expr;
  };
  Rewrite(function, keep, MayEnter).value();
}

bool IsFunctionValue(const Expr& expr) {
  if (expr->As<Op>() || expr->As<GlobalVar>() || (expr->As<Function>() && !IsPlainLiteral(expr))) return false;
  return HoldsFunction(expr->type());
}

bool HasFunctionValues(const Expr& function) {
  bool found = false;
  VisitOutside(function, [&](const Expr& expr) { found = found || (expr != function && IsFunctionValue(expr)); });
  return found;
}

std::set<std::string> Called(const Expr& function) {
  std::set<std::string> called;
  PostOrder(function, [&](const Expr& expr) {
    if (const GlobalVar* global = expr->As<GlobalVar>()) called.insert(global->name);
  });
  return called;
}

/// The functions that are reached from those that `name` calls.
std::set<std::string> ReachedFrom(const std::string& name, const IRModule& module) {
  std::set<std::string> reached;
  std::vector<std::string> pending{name};
  while (!pending.empty()) {
    const Expr function = module.Find(pending.back());
    pending.pop_back();
    if (!function) continue;  // whoever calls it says so
    for (const std::string& called : Called(function)) {
      if (reached.insert(called).second) pending.push_back(called);
    }
  }
  return reached;
}

bool CallsItself(const Let& let) {
  bool calls_itself = false;
  if (IsPlainLiteral(let.value)) PostOrder(let.value, [&](const Expr& expr) { calls_itself = calls_itself || expr == let.variable; });
  return calls_itself;
}

/// The outermost let of a function that calls itself; null where there is none.
Expr RecursiveLet(const Expr& function) {
  const std::vector<const Expr*> order = PostOrderList(function);
  for (size_t i = order.size(); i-- > 0;) {
    const Let* let = (*order[i])->As<Let>();
    if (let && CallsItself(*let)) return *order[i];
  }
  return nullptr;
}

/// `function` without the lets for which `which` answers true.
Result<Expr> WithoutLetsThat(const Expr& function, const std::function<bool(const Let&)>& which) {
  std::unordered_map<const ExprNode*, const ExprNode*> values;  // by variable
  std::unordered_map<const ExprNode*, Expr> rewritten;          // by value
  PostOrder(function, [&](const Expr& expr) {
    const Let* let = expr->As<Let>();
    if (!let || !which(*let)) return;
    values.emplace(let->variable.get(), let->value.get());
    rewritten.emplace(let->value.get(), nullptr);
  });
  if (values.empty()) return function;
  const auto rewrite = [&](const Expr& original, const Expr& expr) -> Result<Expr> {
    Expr result = expr;
    if (const auto variable = values.find(original.get()); variable != values.end()) {
      result = rewritten.at(variable->second);
      if (!result) return Fail("%" + original->As<Var>()->name + " is a function that calls itself; it must be a function of the module");
    }
    if (const auto value = rewritten.find(original.get()); value != rewritten.end()) value->second = result;
    return result;
  };
  return Rewrite(function, rewrite, MayEnter);
}

/// Variables of a literal that are bound outside of it.
std::vector<Expr> CapturedBy(const Expr& literal, const Expr& itself) {
  std::unordered_set<const ExprNode*> bound{itself.get()};
  std::vector<Expr> variables;
  PostOrder(literal, [&](const Expr& expr) {
    if (expr->As<Var>()) variables.push_back(expr);
    if (const Let* let = expr->As<Let>()) bound.insert(let->variable.get());
    if (const Function* function = expr->As<Function>()) {
      for (const Expr& parameter : function->parameters) bound.insert(parameter.get());
    }
  });
  std::erase_if(variables, [&](const Expr& variable) { return bound.contains(variable.get()); });
  return variables;
}

/// fn (%p) { @global(%p, %captured) }, which is what a recursion is to its users.
Result<Expr> WithCaptured(const Expr& global, const std::vector<Expr>& captured) {
  std::vector<Expr> parameters;
  const std::vector<Type>& types = global->type().AsFunction()->parameters;
  while (parameters.size() + captured.size() < types.size())
    parameters.push_back(MakeVar("p" + std::to_string(parameters.size()), types[parameters.size()]));
  std::vector<Expr> arguments = parameters;
  arguments.insert(arguments.end(), captured.begin(), captured.end());
  return MakeFunction(std::move(parameters), COLLAGE_TRY(MakeCall(global, std::move(arguments))));
}

/// Makes functions of the module of lets of functions that call themselves.
Status LiftRecursions(const std::string& name, IRModule& module, NameSupply& names) {
  while (const Expr expr = RecursiveLet(module.Find(name))) {
    const Let& let = *expr->As<Let>();
    const Function& literal = *let.value->As<Function>();
    const std::vector<Expr> captured = CapturedBy(let.value, let.variable);
    std::unordered_map<const ExprNode*, Expr> inside;
    std::vector<Expr> parameters = literal.parameters;
    std::vector<Expr> passed_on;
    FunctionType type;
    for (const Expr& variable : captured) {
      passed_on.push_back(MakeVar(variable->As<Var>()->name, variable->type()));
      inside.emplace(variable.get(), passed_on.back());
    }
    parameters.insert(parameters.end(), passed_on.begin(), passed_on.end());
    for (const Expr& parameter : parameters) type.parameters.push_back(parameter->type());
    type.result = std::make_shared<const Type>(literal.result_type);
    const std::string lifted = names.Fresh(name + "_" + let.variable->As<Var>()->name);
    const Expr global = MakeGlobalVar(lifted, std::move(type));
    inside.emplace(let.variable.get(), COLLAGE_TRY(WithCaptured(global, passed_on)));
    const Expr body = COLLAGE_TRY(Substitute(literal.body, inside));
    module.Set(lifted, COLLAGE_TRY(MakeFunction(std::move(parameters), body, {}, literal.result_type)));
    const Expr outside = COLLAGE_TRY(WithCaptured(global, captured));
    const Expr rest = COLLAGE_TRY(Substitute(let.body, {{let.variable.get(), outside}}));
    module.Set(name, COLLAGE_TRY(Substitute(module.Find(name), {{expr.get(), rest}})));
  }
  return {};
}

/// Writes out the functions that are called in one function of a module, round by round.
class Inliner {
 public:
  explicit Inliner(const IRModule& module) : module_(module) {}

  Result<Expr> Run(Expr function) const {
    const size_t most = PostOrderList(function).size() + kMostNodes;
    while (true) {
      const Expr before = function;
      function = COLLAGE_TRY(Rewrite(
          before, [this](const Expr&, const Expr& expr) { return Inlined(expr); }, MayEnter));
      if (function == before) return function;
      if (PostOrderList(function).size() > most)
        return Fail("functions that are values make more than " + std::to_string(kMostNodes) + " nodes where they are written out");
    }
  }

 private:
  [[nodiscard]] Result<Expr> Inlined(const Expr& expr) const {
    if (const TupleGetItem* item = expr->As<TupleGetItem>()) {
      const Tuple* tuple = item->tuple->As<Tuple>();
      return tuple && HoldsFunction(item->tuple->type()) ? tuple->fields[item->index] : expr;
    }
    const Call* call = expr->As<Call>();
    if (!call) return expr;
    if (const If* choice = call->callee->As<If>()) {
      const Expr then_call = COLLAGE_TRY(MakeCall(choice->then_branch, call->args, call->attributes, expr->origin()));
      const Expr else_call = COLLAGE_TRY(MakeCall(choice->else_branch, call->args, call->attributes, expr->origin()));
      return MakeIf(choice->condition, then_call, else_call);
    }
    const Expr callee = Callee(call->callee);
    if (!callee) return expr;
    const Function& function = *callee->As<Function>();
    std::unordered_map<const ExprNode*, Expr> arguments;
    for (size_t i = 0; i < call->args.size(); ++i) arguments.emplace(function.parameters[i].get(), call->args[i]);
    return Substitute(function.body, arguments);
  }

  /// What is written out in place of a call; null where the call stays.
  [[nodiscard]] Expr Callee(const Expr& callee) const {
    if (IsPlainLiteral(callee)) return callee;
    const GlobalVar* global = callee->As<GlobalVar>();
    const Expr function = global ? module_.Find(global->name) : nullptr;
    if (!function || !MayEnter(function)) return nullptr;
    const FunctionType& type = *callee->type().AsFunction();
    const bool holds = HoldsFunction(*type.result) || std::any_of(type.parameters.begin(), type.parameters.end(), HoldsFunction);
    return holds && !ReachedFrom(global->name, module_).contains(global->name) ? function : nullptr;
  }

  const IRModule& module_;
};

Status CheckNoValues(const Expr& function) {
  Status status;
  const auto fail = [&](const Expr& expr, const std::string& message) {
    if (!status) return;
    const std::string place = expr->origin().ToString();
    status = place.empty() ? Fail(message) : Fail(Error{message}.At(place));
  };
  VisitOutside(function, [&](const Expr& expr) {
    if (expr == function) return;
    const Call* call = expr->As<Call>();
    if (call && IsFunctionValue(call->callee)) fail(expr, "a function that is a value is called; plans have no closures");
    if (call && std::any_of(call->args.begin(), call->args.end(), [](const Expr& arg) { return HoldsFunction(arg->type()); }))
      fail(expr, "a function is an argument of a call that is not written out, since it may call itself; plans have no closures");
  });
  VisitOutside(function, [&](const Expr& expr) {
    if (expr != function && IsFunctionValue(expr))
      fail(expr, "a function is used as a value, of type " + ToString(expr->type()) + "; plans have no closures");
  });
  return status;
}

}  // namespace

bool HoldsFunction(const Type& type) {
  if (type.AsFunction()) return true;
  const TupleType* tuple = type.AsTuple();
  return tuple && std::any_of(tuple->fields.begin(), tuple->fields.end(), HoldsFunction);
}

Result<Expr> WithoutLets(const Expr& function) {
  return WithoutLetsThat(function, [](const Let&) { return true; });
}

Result<IRModule> InlineClosures(const IRModule& module) {
  const auto has_values = [](const auto& entry) { return MayEnter(entry.second) && HasFunctionValues(entry.second); };
  if (std::none_of(module.functions().begin(), module.functions().end(), has_values)) return module;
  IRModule result = module;
  NameSupply names;
  for (const auto& [name, function] : module.functions()) names.Reserve(name);
  // What a recursion captures may then be functions no more.
  const auto binds_function = [](const Let& let) { return HoldsFunction(let.variable->type()) && !CallsItself(let); };
  result = COLLAGE_TRY(RewriteFunctions(result, [&](const Expr& function) { return WithoutLetsThat(function, binds_function); }));
  for (size_t i = 0; i < result.functions().size(); ++i) {  // those that are lifted follow
    const std::string name = result.functions()[i].first;
    if (!MayEnter(result.Find(name))) continue;
    if (Status lifted = LiftRecursions(name, result, names); !lifted) return Fail(lifted.error().At("@" + name));
  }
  result = COLLAGE_TRY(RewriteFunctions(result, WithoutLets));
  result = COLLAGE_TRY(RewriteFunctions(result, [&](const Expr& function) { return Inliner(result).Run(function); }));
  const std::set<std::string> reached = ReachedFrom("main", result);
  for (const std::pair<std::string, Expr>& entry : std::vector<std::pair<std::string, Expr>>(result.functions())) {
    if (entry.first != "main" && !reached.contains(entry.first)) {
      result.Remove(entry.first);
    } else if (MayEnter(entry.second)) {
      if (Status status = CheckNoValues(entry.second); !status) return Fail(status.error().At("@" + entry.first));
    }
  }
  return result;
}

}  // namespace collage
