#include "collage/op/interpreter.h"

#include <algorithm>
#include <unordered_map>

#include "collage/ir/failure.h"
#include "collage/op/function_uses.h"
#include "collage/support/check.h"

namespace collage {

/// A function literal and the values of the variables that it uses from outside. `self` is the variable that a let binds to
/// the closure itself, so that it can call itself: it is bound again at each call, since a closure holding itself would leak.
struct Closure {
  Expr function;
  std::vector<std::pair<Expr, Value>> captured;
  Expr self;
};

const std::vector<Value>* Value::AsTuple() const {
  const auto* tuple = std::get_if<std::shared_ptr<const std::vector<Value>>>(&value_);
  return tuple ? tuple->get() : nullptr;
}

const Closure* Value::AsClosure() const {
  const auto* closure = std::get_if<std::shared_ptr<const Closure>>(&value_);
  return closure ? closure->get() : nullptr;
}

Type Value::type() const {
  if (const Tensor* tensor = AsTensor()) return tensor->type();
  if (const Closure* closure = AsClosure()) return closure->function->type();
  TupleType tuple;
  for (const Value& field : *AsTuple()) tuple.fields.push_back(field.type());
  return tuple;
}

namespace {

void Flatten(const Value& value, std::vector<Tensor>& tensors) {
  if (const Tensor* tensor = value.AsTensor()) tensors.push_back(*tensor);
  if (const std::vector<Value>* tuple = value.AsTuple()) {
    for (const Value& field : *tuple) Flatten(field, tensors);
  }
}

/// A value of a type from its tensors, beginning at `next`, which is moved on.
Value Unflatten(const Type& type, std::span<const Tensor> tensors, size_t& next) {
  const TupleType* tuple = type.AsTuple();
  if (!tuple) return tensors[next++];
  std::vector<Value> fields;
  for (const Type& field : tuple->fields) fields.push_back(Unflatten(field, tensors, next));
  return fields;
}

bool HoldsFunction(const Type& type) {
  if (type.AsFunction()) return true;
  const TupleType* tuple = type.AsTuple();
  return tuple && std::any_of(tuple->fields.begin(), tuple->fields.end(), HoldsFunction);
}

/// Evaluates with a stack of its own, so that neither long chains nor deep recursion of the program overflow the C++ stack.
/// Every expression is evaluated at most once for each call of the function that it stands in. A call whose result is its caller's takes
/// the caller's place, so that a loop holds the tensors of one iteration.
class Interpreter {
 public:
  Interpreter(const IRModule* module, const InterpreterOptions& options) : module_(module), options_(options) {}

  Result<Value> Run(const Expr& function, std::vector<Value> arguments) {
    Enter(std::make_shared<const Closure>(Closure{function, {}, nullptr}), std::move(arguments));
    while (!stack_.empty()) COLLAGE_TRY_STATUS(Advance());
    return TakeResult();
  }

 private:
  struct Slot {
    Value value;
    uint32_t remaining_uses;
  };
  /// One running call of a function.
  struct Frame {
    Expr function;
    const FunctionUses* uses;
    std::unordered_map<const ExprNode*, Slot> slots;
    size_t first_item;  ///< on the stack
  };
  struct Item {
    const Expr* expr;
    int stage = 0;               ///< how many times it has been taken up already
    const Expr* self = nullptr;  ///< of the value of a let: its variable
  };

  static bool IsImmediate(const Expr& expr) { return expr->As<Constant>() || expr->As<GlobalVar>(); }

  void Push(const Expr& expr, const Expr* self = nullptr) {
    if (!IsImmediate(expr) && !frames_.back().slots.contains(expr.get())) stack_.push_back({&expr, 0, self});
  }

  void Bind(Frame& frame, const Expr& expr, Value value) {
    const auto uses = frame.uses->counts.find(expr.get());
    if (uses != frame.uses->counts.end()) frame.slots.insert_or_assign(expr.get(), Slot{std::move(value), uses->second});
  }

  void Finish(const Expr& expr, Value value) {
    Bind(frames_.back(), expr, std::move(value));
    stack_.pop_back();
  }

  /// The value of an evaluated expression on behalf of one of its users; the last one removes it from the frame.
  Result<Value> Take(const Expr& expr) {
    if (const Constant* constant = expr->As<Constant>()) return Value(constant->value);
    if (const GlobalVar* global = expr->As<GlobalVar>()) return Global(expr, *global);
    const auto slot = frames_.back().slots.find(expr.get());
    COLLAGE_CHECK(slot != frames_.back().slots.end());
    if (--slot->second.remaining_uses > 0) return slot->second.value;
    Value value = std::move(slot->second.value);
    frames_.back().slots.erase(slot);
    return value;
  }

  Result<Value> Global(const Expr& expr, const GlobalVar& global) {
    const Expr function = module_ ? module_->Find(global.name) : nullptr;
    if (!function) return Fail("@" + global.name + " is called, but the module has no such function");
    if (!(function->type() == expr->type())) {
      return Fail("@" + global.name + " is used as " + ToString(expr->type()) + ", but has type " + ToString(function->type()));
    }
    return Value(std::make_shared<const Closure>(Closure{function, {}, nullptr}));
  }

  void Enter(const Value& callee, std::vector<Value> arguments) {
    const Closure& closure = *callee.AsClosure();
    const Function& function = *closure.function->As<Function>();
    frames_.push_back({closure.function, &uses_.Of(closure.function), {}, stack_.size()});
    Frame& frame = frames_.back();
    for (size_t i = 0; i < arguments.size(); ++i) Bind(frame, function.parameters[i], std::move(arguments[i]));
    for (const auto& [variable, value] : closure.captured) Bind(frame, variable, value);
    if (closure.self) Bind(frame, closure.self, callee);
    Push(function.body);
  }

  /// Whether all that the running function still does is to give what is being evaluated as its own result.
  [[nodiscard]] bool IsTail() const {
    for (size_t i = stack_.size() - 1; i-- > frames_.back().first_item;) {
      const bool waits_for_result = ((*stack_[i].expr)->As<If>() || (*stack_[i].expr)->As<Let>()) && stack_[i].stage >= 2;
      if (!waits_for_result) return false;
    }
    return true;
  }

  /// The result of the function that has just run, whose frame ends.
  Result<Value> TakeResult() {
    Result<Value> result = Take(frames_.back().function->As<Function>()->body);
    frames_.pop_back();
    return result;
  }

  Status Advance() {
    const Expr& expr = *stack_.back().expr;
    if (frames_.back().slots.contains(expr.get()) && stack_.back().stage == 0) {
      stack_.pop_back();
      return {};
    }
    const int stage = stack_.back().stage++;
    if (const Call* call = expr->As<Call>()) return AdvanceCall(expr, *call, stage);
    if (const Let* let = expr->As<Let>()) return AdvanceLet(expr, *let, stage);
    if (const If* branch = expr->As<If>()) return AdvanceIf(expr, *branch, stage);
    if (expr->As<Function>()) return Capture(expr);
    if (const Var* variable = expr->As<Var>()) return Fail("%" + variable->name + " is used where nothing binds it");
    return AdvanceTuple(expr, stage);
  }

  Status AdvanceTuple(const Expr& expr, int stage) {
    const Tuple* tuple = expr->As<Tuple>();
    if (const TupleGetItem* item = expr->As<TupleGetItem>()) {
      if (stage == 0) {
        Push(item->tuple);
        return {};
      }
      const Value value = COLLAGE_TRY(Take(item->tuple));
      Finish(expr, (*value.AsTuple())[item->index]);
      return {};
    }
    COLLAGE_CHECK(tuple != nullptr);
    if (stage == 0) {
      for (size_t i = tuple->fields.size(); i-- > 0;) Push(tuple->fields[i]);
      return {};
    }
    std::vector<Value> fields;
    for (const Expr& field : tuple->fields) fields.push_back(COLLAGE_TRY(Take(field)));
    Finish(expr, std::move(fields));
    return {};
  }

  Status AdvanceLet(const Expr& expr, const Let& let, int stage) {
    if (stage == 0) {
      Push(let.value, &let.variable);
    } else if (stage == 1) {
      Bind(frames_.back(), let.variable, COLLAGE_TRY(Take(let.value)));
      Push(let.body);
    } else {
      Finish(expr, COLLAGE_TRY(Take(let.body)));
    }
    return {};
  }

  Status AdvanceIf(const Expr& expr, const If& branch, int stage) {
    if (stage == 0) {
      Push(branch.condition);
      return {};
    }
    if (stage == 1) {
      const Value condition = COLLAGE_TRY(Take(branch.condition));
      const bool holds = *condition.AsTensor()->Data<bool>();
      stack_.back().stage = holds ? 2 : 3;
      Push(holds ? branch.then_branch : branch.else_branch);
      return {};
    }
    Finish(expr, COLLAGE_TRY(Take(stage == 2 ? branch.then_branch : branch.else_branch)));
    return {};
  }

  Status Capture(const Expr& expr) {
    const Expr* self = stack_.back().self;
    Closure closure{expr, {}, nullptr};
    for (const Expr& variable : uses_.Of(expr).captured) {
      if (self && variable == *self) {
        closure.self = variable;
        continue;
      }
      if (!frames_.back().slots.contains(variable.get())) return Fail("%" + variable->As<Var>()->name + " is used where nothing binds it");
      closure.captured.emplace_back(variable, COLLAGE_TRY(Take(variable)));
    }
    Finish(expr, Value(std::make_shared<const Closure>(std::move(closure))));
    return {};
  }

  Status AdvanceCall(const Expr& expr, const Call& call, int stage) {
    const Op* op = call.callee->As<Op>();
    if (stage == 0) {
      for (size_t i = call.args.size(); i-- > 0;) Push(call.args[i]);
      if (!op) Push(call.callee);
      return {};
    }
    if (stage == 2) {
      Finish(expr, COLLAGE_TRY(TakeResult()));
      return {};
    }
    if (options_.should_stop && options_.should_stop()) return Fail("stopped");
    Value callee;
    if (!op) callee = COLLAGE_TRY(Take(call.callee));
    std::vector<Value> arguments;
    for (const Expr& arg : call.args) arguments.push_back(COLLAGE_TRY(Take(arg)));
    if (op && op->def->is_identity) {
      Finish(expr, std::move(arguments[0]));
    } else if (op) {
      Finish(expr, RunOperator(expr, *op->def, call.attributes, arguments));
    } else {
      if (const std::string failure = FailureOf(*callee.AsClosure()->function->As<Function>()); !failure.empty()) return Fail(failure);
      if (IsTail()) {
        stack_.resize(frames_.back().first_item);
        frames_.pop_back();
      }
      Enter(callee, std::move(arguments));
    }
    return {};
  }

  Value RunOperator(const Expr& expr, const OpDef& op, const Attributes& attributes, const std::vector<Value>& arguments) {
    std::vector<Tensor> inputs;
    for (const Value& argument : arguments) Flatten(argument, inputs);
    std::vector<Tensor> outputs;
    if (op.is_view) {
      outputs.push_back(inputs[0].Reshaped(expr->type().AsTensor()->shape));
    } else {
      for (TensorType& type : collage::FlattenTensors(expr->type())) outputs.emplace_back(std::move(type));
      op.reference(inputs, attributes, outputs);
    }
    if (options_.round) options_.round(expr, outputs);
    if (options_.on_operator) options_.on_operator(expr, outputs);
    if (options_.on_values) options_.on_values(expr, inputs, outputs);
    size_t next = 0;
    return Unflatten(expr->type(), outputs, next);
  }

  const IRModule* module_;
  const InterpreterOptions& options_;
  FunctionUsesCache uses_;
  std::vector<Frame> frames_;
  std::vector<Item> stack_;
};

Result<Value> Start(const IRModule* module, const Expr& function, std::vector<Value> arguments, const InterpreterOptions& options) {
  const std::vector<Expr>& parameters = function->As<Function>()->parameters;
  if (arguments.size() != parameters.size()) {
    return Fail("found " + std::to_string(arguments.size()) + " arguments, expected " + std::to_string(parameters.size()));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Tensor* tensor = arguments[i].AsTensor();
    if (tensor && !tensor->Defined()) return Fail("%" + parameters[i]->As<Var>()->name + " is given a tensor without a value");
    const Type type = arguments[i].type();
    if (type == parameters[i]->type()) continue;
    return Fail("%" + parameters[i]->As<Var>()->name + " is given " + ToString(type) + ", expected " + ToString(parameters[i]->type()));
  }
  return Interpreter(module, options).Run(function, std::move(arguments));
}

Result<std::vector<Tensor>> StartWithTensors(const IRModule* module, const Expr& function, const std::vector<Tensor>& inputs,
                                             const InterpreterOptions& options) {
  const std::vector<Expr>& parameters = function->As<Function>()->parameters;
  std::vector<TensorType> types;
  for (const Expr& parameter : parameters) {
    if (HoldsFunction(parameter->type()))
      return Fail("%" + parameter->As<Var>()->name + " is of type " + ToString(parameter->type()) +
                  ", expected a tensor or a tuple of them");
    for (TensorType& type : FlattenTensors(parameter->type())) types.push_back(std::move(type));
  }
  if (inputs.size() != types.size())
    return Fail("found " + std::to_string(inputs.size()) + " input tensors, expected " + std::to_string(types.size()));
  std::vector<Value> arguments;
  size_t next = 0;
  for (const Expr& parameter : parameters) arguments.push_back(Unflatten(parameter->type(), inputs, next));
  return FlattenTensors(COLLAGE_TRY(Start(module, function, std::move(arguments), options)));
}

Result<Expr> FindFunction(const IRModule& module, const std::string& name) {
  Expr function = module.Find(name);
  if (!function) return Fail("the module has no function @" + name);
  return function;
}

}  // namespace

std::vector<Tensor> FlattenTensors(const Value& value) {
  std::vector<Tensor> tensors;
  Flatten(value, tensors);
  return tensors;
}

Result<Value> Interpret(const IRModule& module, const std::string& function, std::vector<Value> arguments,
                        const InterpreterOptions& options) {
  const Expr literal = COLLAGE_TRY(FindFunction(module, function));
  Result<Value> result = Start(&module, literal, std::move(arguments), options);
  return result ? std::move(result) : Fail(result.error().At("@" + function));
}

Result<std::vector<Tensor>> InterpretTensors(const IRModule& module, const std::string& function, const std::vector<Tensor>& inputs,
                                             const InterpreterOptions& options) {
  const Expr literal = COLLAGE_TRY(FindFunction(module, function));
  Result<std::vector<Tensor>> result = StartWithTensors(&module, literal, inputs, options);
  return result ? std::move(result) : Fail(result.error().At("@" + function));
}

Result<std::vector<Tensor>> InterpretMain(const IRModule& module, const std::vector<Tensor>& inputs, const InterpreterOptions& options) {
  return InterpretTensors(module, "main", inputs, options);
}

Result<std::vector<Tensor>> InterpretFunction(const Expr& function, const std::vector<Tensor>& inputs, const InterpreterOptions& options) {
  COLLAGE_CHECK(function->As<Function>() != nullptr);
  return StartWithTensors(nullptr, function, inputs, options);
}

}  // namespace collage
