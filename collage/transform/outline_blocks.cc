#include "collage/transform/outline_blocks.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "collage/ir/failure.h"
#include "collage/ir/scope_tree.h"
#include "collage/ir/visit.h"
#include "collage/support/name_supply.h"
#include "collage/transform/function_pass.h"
#include "collage/transform/inline_closures.h"

namespace collage {
namespace {

/// A kernel that a plan takes as it is.
bool IsKernel(const Expr& function) { return function->As<Function>() && !MayEnter(function); }

bool IsGlue(const Expr& expr) { return expr->As<Tuple>() || expr->As<TupleGetItem>(); }

bool CallsKernel(const Call& call, const IRModule& module) {
  if (const GlobalVar* global = call.callee->As<GlobalVar>()) {
    const Expr function = module.Find(global->name);
    return function && IsKernel(function);
  }
  return call.callee->As<Op>() || call.callee->As<Function>();
}

bool IsControl(const Expr& expr, const IRModule& module) {
  const Call* call = expr->As<Call>();
  return expr->As<If>() || (call && !CallsKernel(*call, module));
}

/// One function of the module, region by region. A region is the body of the function or a branch; it becomes a function.
class Outliner {
 public:
  Outliner(const std::string& name, const Expr& function, const IRModule& module, NameSupply& names, IRModule& result)
      : name_(name), function_(function), module_(module), names_(names), result_(result), tree_(function) {}

  Status Run() {
    OpenRegion(tree_.OpenedBy(function_.get()), name_, function_->As<Function>()->body);
    const std::vector<const Expr*> order = PostOrderList(function_);
    // Parents come before children here, so that a region is known before what stands in it.
    for (size_t i = order.size(); i-- > 0;) {
      const If* branch = (*order[i])->As<If>();
      if (branch && regions_.contains(tree_.ScopeOf(*order[i]))) {
        const size_t opened = tree_.OpenedBy(order[i]->get());
        OpenRegion(opened, names_.Fresh(name_ + "_then"), branch->then_branch);
        OpenRegion(opened + 1, names_.Fresh(name_ + "_else"), branch->else_branch);
      }
    }
    for (const Expr* expr : order) COLLAGE_TRY_STATUS(Take(*expr));
    for (const auto& [scope, region] : regions_) Use(region.result, scope);
    for (auto& [scope, region] : regions_) Schedule(region);
    for (auto& [scope, region] : regions_) COLLAGE_TRY_STATUS(Build(scope, region));
    return {};
  }

 private:
  struct Member {
    const Expr* expr;
    size_t time = 0;
  };
  struct Region {
    std::string name;
    Expr result;
    std::vector<Member> members;  ///< in post-order
    std::vector<Expr> captured;   ///< what lies in regions around it, each once
    std::unordered_set<const ExprNode*> is_captured;
  };
  /// While a region is built.
  struct Built {
    std::unordered_map<const ExprNode*, Expr> now;  ///< what stands for each expression
    std::unordered_set<const ExprNode*> wanted;     ///< what a block computes for others
  };

  void OpenRegion(size_t scope, const std::string& name, const Expr& result) { regions_[scope] = {name, result, {}, {}, {}}; }

  static bool IsImmediate(const Expr& expr) { return IsLeaf(expr) && !expr->As<Var>(); }

  /// An expression that lies outside of `scope` is captured by every region between.
  void Use(const Expr& expr, size_t scope) {
    if (IsImmediate(expr) || expr->As<Function>()) return;
    for (const size_t home = tree_.ScopeOf(expr); scope != home; scope = tree_.scope(scope).parent) {
      Region& region = regions_.at(scope);
      if (!region.is_captured.insert(expr.get()).second) return;
      region.captured.push_back(expr);
    }
  }

  Status Take(const Expr& expr) {
    if (expr == function_ || IsImmediate(expr)) return {};
    const size_t scope = tree_.ScopeOf(expr);
    const auto region = regions_.find(scope);
    if (region == regions_.end()) return {};  // inside of a kernel
    if (expr->As<Var>() || expr->As<Function>()) return {};
    if (HoldsFunction(expr->type()))
      return Fail("a function is used as a value, of type " + ToString(expr->type()) + "; plans have no closures");
    const Call* call = expr->As<Call>();
    if (call && !call->callee->As<GlobalVar>() && !CallsKernel(*call, module_))
      return Fail("a function that is a value is called; plans have no closures");
    region->second.members.push_back({&expr});
    if (const If* branch = expr->As<If>()) {
      Use(branch->condition, scope);
      return {};
    }
    ForEachChild(*expr, [&](const Expr& child) { Use(child, scope); });
    return {};
  }

  /// What an expression needs of its own region.
  template <class Visitor>
  void ForEachNeeded(const Expr& expr, Visitor&& visit) const {
    if (const If* branch = expr->As<If>()) {
      visit(branch->condition);
      const size_t opened = tree_.OpenedBy(expr.get());
      for (const size_t scope : {opened, opened + 1}) {
        for (const Expr& captured : regions_.at(scope).captured) visit(captured);
      }
      return;
    }
    ForEachChild(*expr, [&](const Expr& child) {
      if (!IsImmediate(child) && !child->As<Function>()) visit(child);
    });
  }

  /// Blocks run at odd times and control flow at even ones; what only binds values together has the time of these.
  void Schedule(Region& region) {
    for (Member& member : region.members) {
      size_t latest = 0;
      ForEachNeeded(*member.expr, [&](const Expr& needed) {
        const auto at = times_.find(needed.get());
        if (at != times_.end() && !region.is_captured.contains(needed.get())) latest = std::max(latest, at->second);
      });
      if (IsControl(*member.expr, module_)) {
        latest = latest / 2 * 2 + 2;
      } else if (!IsGlue(*member.expr)) {
        latest |= 1;
      }
      member.time = times_[member.expr->get()] = latest;
    }
    std::stable_sort(region.members.begin(), region.members.end(), [](const Member& a, const Member& b) { return a.time < b.time; });
  }

  Status Build(size_t scope, Region& region) {
    Built built;
    std::vector<Expr> parameters;
    if (scope == tree_.OpenedBy(function_.get())) {
      parameters = function_->As<Function>()->parameters;
      for (const Expr& parameter : parameters) built.now.emplace(parameter.get(), parameter);
    }
    for (const Expr& captured : region.captured) {
      parameters.push_back(MakeVar("captured" + std::to_string(parameters.size()), captured->type()));
      built.now.emplace(captured.get(), parameters.back());
    }
    FindWanted(region, built);
    for (size_t begin = 0; begin < region.members.size();) {
      size_t end = begin;
      while (end < region.members.size() && region.members[end].time == region.members[begin].time) ++end;
      const std::span<const Member> members(region.members.data() + begin, end - begin);
      if (members[0].time % 2 == 1) COLLAGE_TRY_STATUS(BuildBlock(members, region, built));
      for (const Member& member : members) COLLAGE_TRY_STATUS(BuildMember(*member.expr, region, built));
      begin = end;
    }
    Attributes attributes = scope == tree_.OpenedBy(function_.get()) ? function_->As<Function>()->attributes : Attributes();
    result_.Set(region.name, COLLAGE_TRY(MakeFunction(std::move(parameters), Now(region.result, built), std::move(attributes))));
    return {};
  }

  /// What is computed is wanted by what has another time, by control flow and as the result; tuples and projections are looked through.
  void FindWanted(const Region& region, Built& built) const {
    for (const Member& member : region.members) {
      if (!IsGlue(*member.expr)) ForEachNeeded(*member.expr, [&](const Expr& needed) { Want(needed, member.time, region, built); });
    }
    Want(region.result, kAfterAll, region, built);
  }

  void Want(const Expr& root, size_t time, const Region& region, Built& built) const {
    std::vector<const Expr*> pending{&root};
    while (!pending.empty()) {
      const Expr& expr = *pending.back();
      pending.pop_back();
      if (IsLeaf(expr) || region.is_captured.contains(expr.get()) || IsControl(expr, module_)) continue;
      if (IsGlue(expr)) {
        ForEachChild(*expr, [&](const Expr& child) { pending.push_back(&child); });
      } else if (times_.at(expr.get()) != time) {
        built.wanted.insert(expr.get());
      }
    }
  }

  /// Straight-line code of one time as a function of what is there already.
  Status BuildBlock(std::span<const Member> members, const Region& region, Built& built) {
    std::unordered_map<const ExprNode*, Expr> parameters_of;
    std::vector<Expr> parameters;
    std::vector<Expr> arguments;
    std::vector<Expr> outputs;
    const size_t time = members[0].time;
    const auto is_inside = [&](const Expr& expr) {
      const auto at = times_.find(expr.get());
      return at != times_.end() && at->second == time && !region.is_captured.contains(expr.get());
    };
    const auto need = [&](const Expr& root) {
      std::vector<const Expr*> pending{&root};
      while (!pending.empty()) {
        const Expr& expr = *pending.back();
        pending.pop_back();
        if (IsImmediate(expr) || expr->As<Function>() || is_inside(expr) || parameters_of.contains(expr.get())) continue;
        if (expr->As<Tuple>() && !region.is_captured.contains(expr.get())) {
          ForEachChild(*expr, [&](const Expr& child) { pending.push_back(&child); });
          continue;
        }
        parameters.push_back(MakeVar("p" + std::to_string(parameters.size()), expr->type()));
        parameters_of.emplace(expr.get(), parameters.back());
        arguments.push_back(Now(expr, built));
      }
    };
    for (const Member& member : members) {
      ForEachChild(**member.expr, need);
      if (built.wanted.contains(member.expr->get())) outputs.push_back(*member.expr);
    }
    Expr body = outputs.size() == 1 ? outputs[0] : MakeTuple(outputs);
    body = COLLAGE_TRY(Substitute(body, parameters_of));
    DropUnused(body, parameters, arguments);
    const std::string name = names_.Fresh("block");
    const Expr block = COLLAGE_TRY(MakeFunction(std::move(parameters), std::move(body), {{kBlockAttribute, 1}}));
    result_.Set(name, block);
    const Expr call = COLLAGE_TRY(MakeCall(MakeGlobalVar(name, block->type()), std::move(arguments)));
    for (size_t i = 0; i < outputs.size(); ++i)
      built.now.emplace(outputs[i].get(), outputs.size() == 1 ? call : COLLAGE_TRY(MakeTupleGetItem(call, i)));
    return {};
  }

  /// Tuples of a block's time that others need may hold what the block does not read.
  static void DropUnused(const Expr& body, std::vector<Expr>& parameters, std::vector<Expr>& arguments) {
    std::unordered_set<const ExprNode*> used;
    for (const Expr* expr : PostOrderList(body)) used.insert(expr->get());
    size_t kept = 0;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!used.contains(parameters[i].get())) continue;
      parameters[kept] = parameters[i];
      arguments[kept++] = arguments[i];
    }
    parameters.resize(kept);
    arguments.resize(kept);
  }

  [[nodiscard]] static Expr Now(const Expr& expr, const Built& built) {
    const auto at = built.now.find(expr.get());
    return at == built.now.end() ? expr : at->second;
  }

  Status BuildMember(const Expr& expr, const Region& region, Built& built) {
    if (region.is_captured.contains(expr.get()) || (!IsGlue(expr) && !IsControl(expr, module_))) return {};
    if (const If* branch = expr->As<If>()) {
      const size_t opened = tree_.OpenedBy(expr.get());
      const Expr then_call = COLLAGE_TRY(CallRegion(opened, branch->then_branch->type(), built));
      const Expr else_call = COLLAGE_TRY(CallRegion(opened + 1, branch->else_branch->type(), built));
      built.now.emplace(expr.get(), COLLAGE_TRY(MakeIf(Now(branch->condition, built), then_call, else_call)));
      return {};
    }
    std::vector<Expr> children;
    ForEachChild(*expr, [&](const Expr& child) { children.push_back(Now(child, built)); });
    built.now.emplace(expr.get(), COLLAGE_TRY(WithChildren(expr, std::move(children))));
    return {};
  }

  Result<Expr> CallRegion(size_t scope, const Type& result, const Built& built) const {
    const Region& region = regions_.at(scope);
    FunctionType type;
    std::vector<Expr> arguments;
    for (const Expr& captured : region.captured) {
      type.parameters.push_back(captured->type());
      arguments.push_back(Now(captured, built));
    }
    type.result = std::make_shared<const Type>(result);
    return MakeCall(MakeGlobalVar(region.name, type), std::move(arguments));
  }

  static constexpr size_t kAfterAll = static_cast<size_t>(-1);

  const std::string& name_;
  const Expr& function_;
  const IRModule& module_;
  NameSupply& names_;
  IRModule& result_;
  ScopeTree tree_;
  std::map<size_t, Region> regions_;  // by scope
  std::unordered_map<const ExprNode*, size_t> times_;
};

/// The ordinary functions that @main reaches, itself first, and the kernels.
std::vector<std::string> Reached(const IRModule& module) {
  std::vector<std::string> names{"main"};
  std::set<std::string> known{"main"};
  for (size_t i = 0; i < names.size(); ++i) {
    const Expr function = module.Find(names[i]);
    if (!function) continue;  // whoever calls it says so
    PostOrder(function, [&](const Expr& expr) {
      const GlobalVar* global = expr->As<GlobalVar>();
      if (global && known.insert(global->name).second) names.push_back(global->name);
    });
  }
  return names;
}

}  // namespace

bool IsStraightLine(const IRModule& module) {
  bool result = true;
  PostOrder(module.MainExpr(), [&](const Expr& expr) { result = result && !IsControl(expr, module); });
  return result;
}

Result<IRModule> OutlineBlocks(const IRModule& module) {
  if (IsStraightLine(module)) return module;
  IRModule result;
  NameSupply names;
  for (const auto& [name, function] : module.functions()) names.Reserve(name);
  for (const std::string& name : Reached(module)) {
    const Expr function = module.Find(name);
    if (!function) return Fail("@" + name + " is called, but the module has no such function");
    if (IsKernel(function) || !FailureOf(*function->As<Function>()).empty()) {
      result.Set(name, function);
      continue;
    }
    Result<Expr> flat = WithoutLets(function);
    if (!flat) return Fail(flat.error().At("@" + name));
    if (Status status = Outliner(name, *flat, module, names, result).Run(); !status) return Fail(status.error().At("@" + name));
  }
  return result;
}

}  // namespace collage
