#include "collage/dataflow/dataflow_graph.h"
#include "collage/dataflow/float_lets.h"
#include "collage/device/plan_devices.h"
#include "collage/ir/print.h"
#include "collage/support/check.h"

namespace collage {
namespace {

/// Rebuilds the functions of a planned module, each expression once.
class Writer {
 public:
  Writer(const DevicePlan& plan, const OpTable& ops, bool says_devices)
      : plan_(plan),
        flow_(plan.flow()),
        on_device_(ops.Find("on_device")),
        device_copy_(ops.Find("device_copy")),
        says_devices_(says_devices) {
    if (!says_devices) return;
    for (const TensorUse& use : flow_.uses) {
      if (plan.CopyFor(use)) copied_[use.user.get()].push_back(&use);
    }
    for (const KeptStatement& kept : plan.kept_statements()) kept_.emplace(kept.of.get(), &kept);
  }

  Result<PlannedProgram> Run() {
    FindVariables();
    const auto& functions = plan_.module().functions();
    for (size_t i = 0; i < functions.size(); ++i) {
      const auto& [name, function] = functions[i];
      if (IsAtomicFunction(function)) {
        program_.module.Set(name, function);
        continue;
      }
      for (const Expr& expr : flow_.Order(i)) COLLAGE_TRY_STATUS(Write(expr));
      program_.module.Set(name, COLLAGE_TRY(FloatLets(program_.written.at(function.get()))));
    }
    return std::move(program_);
  }

 private:
  /// What is only the value of a let goes by the variable.
  void FindVariables() {
    std::unordered_map<const ExprNode*, size_t> users;
    std::unordered_map<const ExprNode*, Expr> variable;
    for (size_t i = 0; i < plan_.module().functions().size(); ++i) {
      for (const Expr& expr : flow_.Order(i)) {
        for (const Expr* child : NodeChildren(expr)) ++users[child->get()];
        if (const Let* let = expr->As<Let>()) variable.emplace(let->value.get(), let->variable);
        const Function* function = expr->As<Function>();
        for (size_t k = 0; function && k < function->parameters.size(); ++k) parameters_.insert(function->parameters[k].get());
      }
    }
    for (const auto& [value, name] : variable) {
      if (users.at(value) == 1) only_variable_.emplace(value, name);
    }
  }

  Status Write(const Expr& expr) {
    Expr written = COLLAGE_TRY(Rewritten(expr));
    if (const auto kept = kept_.find(expr.get()); kept != kept_.end()) {
      program_.origin.emplace(written.get(), expr);
      written = COLLAGE_TRY(MakeCall(on_device_, {written}, {{"virtual_device", kept->second->devices}, {"constrain_result", true}}));
    }
    program_.origin.emplace(written.get(), expr);
    program_.written[expr.get()] = std::move(written);
    return {};
  }

  Result<Expr> Rewritten(const Expr& expr) {
    if (IsCallOf(expr, "on_device") || plan_.IsWithinOnePlace(expr.get())) return program_.written.at(expr->As<Call>()->args[0].get());
    if (const Function* function = expr->As<Function>()) return IsAtomicFunction(expr) ? expr : RewrittenFunction(expr, *function);
    if (const Var* variable = expr->As<Var>()) return RewrittenVariable(expr, *variable);
    std::vector<Expr> children;
    if (const Call* call = expr->As<Call>()) {
      children.push_back(call->callee->As<Op>() ? call->callee : program_.written.at(call->callee.get()));
      for (size_t i = 0; i < call->args.size(); ++i) children.push_back(COLLAGE_TRY(Used(expr, i, call->args[i])));
    } else if (const If* branch = expr->As<If>()) {
      children.push_back(COLLAGE_TRY(Used(expr, 0, branch->condition)));
      children.push_back(COLLAGE_TRY(Used(expr, 1, branch->then_branch)));
      children.push_back(COLLAGE_TRY(Used(expr, 2, branch->else_branch)));
    } else {
      for (const Expr& child : Children(expr)) children.push_back(program_.written.at(child.get()));
    }
    if (says_devices_ && IsCallOf(expr, "device_copy")) return MakeCall(device_copy_, {children[1]}, EndsOf(expr));
    return WithChildren(expr, std::move(children));
  }

  /// Both ends of a copy of the program as they are planned. What was stated behind an on_device, which is gone, was not about the
  /// tensor that is read now.
  [[nodiscard]] Attributes EndsOf(const Expr& copy) const {
    std::vector<VirtualDevice> from;
    for (const TensorLeaf& leaf : flow_.Of(copy->As<Call>()->args[0].get())) from.push_back(plan_.DeviceOf(leaf.tensor).Place());
    return {{"src_virtual_device", ToString(from, copy->type())}, {"dst_virtual_device", ToString(plan_.DevicesOf(copy), copy->type())}};
  }

  /// A parameter says where its tensors are. Variables of lets are bound to what they were.
  Result<Expr> RewrittenVariable(const Expr& expr, const Var& variable) {
    if (!says_devices_ || !parameters_.contains(expr.get())) return expr;
    const std::string devices = ToString(plan_.DevicesOf(expr), expr->type());
    return devices == variable.virtual_device ? expr : MakeVar(variable.name, expr->type(), devices);
  }

  Result<Expr> RewrittenFunction(const Expr& expr, const Function& function) {
    std::vector<Expr> parameters;
    for (const Expr& parameter : function.parameters) parameters.push_back(program_.written.at(parameter.get()));
    Attributes attributes = function.attributes;
    if (says_devices_) attributes.Set("virtual_device", ToString(plan_.DevicesOfResult(expr), function.result_type));
    return MakeFunction(std::move(parameters), COLLAGE_TRY(Used(expr, 0, function.body)), std::move(attributes), function.result_type);
  }

  /// A part of `user` as it reads it: where tensors of it are copied, put together from those alone.
  Result<Expr> Used(const Expr& user, size_t part, const Expr& value) {
    const auto copied = copied_.find(user.get());
    std::unordered_map<size_t, const TensorUse*> uses;
    if (copied != copied_.end()) {
      for (const TensorUse* use : copied->second) {
        if (use->part == part) uses.emplace(use->leaf, use);
      }
    }
    if (uses.empty()) return program_.written.at(value.get());
    // Variables that the value is made of are visible behind their lets only, so the copies stand there.
    std::vector<const Let*> lets;
    const Expr* end = &value;
    for (const Let* let = (*end)->As<Let>(); let; let = (*end)->As<Let>()) {
      lets.push_back(let);
      end = &let->body;
    }
    size_t leaf = 0;
    Expr result = COLLAGE_TRY(Assemble(value->type(), *end, leaf, uses));
    for (; !lets.empty(); lets.pop_back()) {
      const Let& let = *lets.back();
      result = COLLAGE_TRY(MakeLet(program_.written.at(let.variable.get()), program_.written.at(let.value.get()), std::move(result)));
    }
    return result;
  }

  // As deep as tuples are nested in a type.
  // NOLINTNEXTLINE(misc-no-recursion)
  Result<Expr> Assemble(const Type& type, const Expr& value, size_t& leaf, const std::unordered_map<size_t, const TensorUse*>& uses) {
    if (const TupleType* tuple = type.AsTuple()) {
      std::vector<Expr> fields;
      for (const Type& field : tuple->fields) fields.push_back(COLLAGE_TRY(Assemble(field, value, leaf, uses)));
      return MakeTuple(std::move(fields));
    }
    const size_t at = leaf;
    leaf += CountDeviceTensors(type);
    if (const auto use = uses.find(at); use != uses.end()) return Copy(*plan_.CopyFor(*use->second));
    const TensorLeaf& part = flow_.Of(value.get())[at];
    if (part.maker == TensorLeaf::kNoMaker || type.AsFunction()) return Field(program_.written.at(value.get()), at);
    const TensorLeaf made = plan_.MakerOf(part.maker, part.field);
    return Made(made.maker, made.field);
  }

  /// One tensor of what a maker makes.
  Result<Expr> Made(uint32_t maker, uint32_t field) {
    const Expr& expr = flow_.makers[maker].expr;
    const auto variable = only_variable_.find(expr.get());
    return Field(program_.written.at((variable == only_variable_.end() ? expr : variable->second).get()), field);
  }

  static Result<Expr> Field(Expr value, size_t leaf) {
    while (const TupleType* tuple = value->type().AsTuple()) {
      size_t index = 0;
      for (size_t count = 0; leaf >= (count = CountDeviceTensors(tuple->fields[index])); leaf -= count) ++index;
      // A tuple that is written down is not made to be taken apart again.
      const Tuple* written = value->As<Tuple>();
      value = written ? Expr(written->fields[index]) : COLLAGE_TRY(MakeTupleGetItem(value, index));
    }
    return value;
  }

  Result<Expr> Copy(const PlannedCopy& copy) {
    const auto number = static_cast<size_t>(&copy - plan_.copies().data());
    Expr& written = inserted_[number];
    if (written) return written;
    const Expr made = COLLAGE_TRY(Made(copy.maker, copy.field));
    written = COLLAGE_TRY(
        MakeCall(device_copy_, {made}, {{"src_virtual_device", copy.from.ToString()}, {"dst_virtual_device", copy.to.ToString()}}));
    program_.inserted_copies.emplace(written.get(), number);
    return written;
  }

  const DevicePlan& plan_;
  const TensorFlow& flow_;
  const OpDef* on_device_;
  const OpDef* device_copy_;
  bool says_devices_;
  PlannedProgram program_;
  std::unordered_map<const ExprNode*, std::vector<const TensorUse*>> copied_;
  std::unordered_map<const ExprNode*, const KeptStatement*> kept_;
  std::unordered_map<const ExprNode*, Expr> only_variable_;
  std::unordered_set<const ExprNode*> parameters_;
  std::unordered_map<size_t, Expr> inserted_;
};

}  // namespace

Result<PlannedProgram> ApplyDevicePlan(const DevicePlan& plan, const OpTable& ops) {
  COLLAGE_CHECK(plan.errors().empty());
  return Writer(plan, ops, true).Run();
}

Result<PlannedProgram> RemoveStatements(const DevicePlan& plan, const OpTable& ops) { return Writer(plan, ops, false).Run(); }

Result<IRModule> PlanDevices(const IRModule& module, const DeviceConfiguration& configuration, const OpTable& ops) {
  const DevicePlan plan = COLLAGE_TRY(DevicePlan::Create(module, configuration));
  if (plan.errors().empty()) return COLLAGE_TRY(ApplyDevicePlan(plan, ops)).module;
  // The value of a let goes by the variable, as in the text.
  std::unordered_map<const ExprNode*, Expr> variables;
  for (size_t i = 0; i < module.functions().size(); ++i) {
    for (const Expr& expr : plan.flow().Order(i)) {
      if (const Let* let = expr->As<Let>()) variables.emplace(let->value.get(), let->variable);
    }
  }
  const PrintedText printed = PrintModule(module);
  return Fail(Describe(plan.errors().front(), [&](const DeviceStatement& statement) {
    const auto& [function, literal] = module.functions()[statement.function];
    if (statement.by == literal) return "@" + function;
    const auto variable = variables.find(statement.by.get());
    const auto name = printed.names.find((variable == variables.end() ? statement.by : variable->second).get());
    return "@" + function + ": " + (name == printed.names.end() ? "its result" : name->second);
  }));
}

}  // namespace collage
