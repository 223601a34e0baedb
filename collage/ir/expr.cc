#include "collage/ir/expr.h"

#include <mutex>
#include <unordered_map>

#include "collage/ir/virtual_device.h"
#include "collage/support/block_allocator.h"
#include "collage/support/check.h"

namespace collage {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

Expr Make(ExprNode::Value value, Type type, Origin origin = {}) {
  return std::allocate_shared<const ExprNode>(BlockAllocator<ExprNode>(), std::move(value), std::move(type), std::move(origin));
}

Result<Type> CallType(const Expr& callee, const std::vector<Expr>& args, const Attributes& attributes) {
  std::vector<Type> types;
  types.reserve(args.size());
  for (const Expr& arg : args) types.push_back(arg->type());
  if (const Op* op = callee->As<Op>()) {
    if (op->def->argument_names.size() != types.size()) {
      return Fail(op->def->name + ": has " + std::to_string(types.size()) + " arguments, expected " +
                  std::to_string(op->def->argument_names.size()));
    }
    for (const auto& [name, value] : attributes.entries()) {
      bool known = false;
      for (const AttributeSpec& spec : op->def->attributes) known = known || spec.name == name;
      if (!known) return Fail(op->def->name + ": has no attribute '" + name + "'");
    }
    for (const AttributeSpec& spec : op->def->attributes) {
      if (spec.required && !attributes.Has(spec.name)) return Fail(op->def->name + ": attribute '" + spec.name + "' is missing");
    }
    Result<Type> type = op->def->infer_type(types, attributes);
    return type ? std::move(type) : Fail(std::move(type).error().At(op->def->name));
  }
  const FunctionType* function = callee->type().AsFunction();
  if (!function) return Fail("the callee has type " + ToString(callee->type()) + ", expected a function");
  if (function->parameters.size() != types.size()) {
    return Fail("the call has " + std::to_string(types.size()) + " arguments, expected " + std::to_string(function->parameters.size()));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (!(types[i] == function->parameters[i])) {
      return Fail("argument " + std::to_string(i) + " has type " + ToString(types[i]) + ", expected " + ToString(function->parameters[i]));
    }
  }
  return *function->result;
}

void MoveChildren(ExprNode::Value& value, std::vector<Expr>& out) {
  const auto take = [&](Expr& child) {
    if (child) out.push_back(std::move(child));
  };
  std::visit(Overloaded{[](Var&) {}, [](GlobalVar&) {}, [](Constant&) {}, [](Op&) {},
                        [&](Call& call) {
                          take(call.callee);
                          for (Expr& arg : call.args) take(arg);
                        },
                        [&](Tuple& tuple) {
                          for (Expr& field : tuple.fields) take(field);
                        },
                        [&](TupleGetItem& item) { take(item.tuple); },
                        [&](Let& let) {
                          take(let.variable);
                          take(let.value);
                          take(let.body);
                        },
                        [&](If& branch) {
                          take(branch.condition);
                          take(branch.then_branch);
                          take(branch.else_branch);
                        },
                        [&](Function& function) {
                          for (Expr& parameter : function.parameters) take(parameter);
                          take(function.body);
                        }},
             value);
}

}  // namespace

// Out of memory here ends the process, as it does elsewhere.
// NOLINTNEXTLINE(bugprone-exception-escape)
ExprNode::~ExprNode() {
  // The first destructor of a thread drains the queue; those that it triggers only hand over their children.
  thread_local std::vector<Expr>* queue = nullptr;
  if (queue) {
    MoveChildren(value_, *queue);
    return;
  }
  std::vector<Expr> pending;
  queue = &pending;
  MoveChildren(value_, pending);
  while (!pending.empty()) {
    Expr next = std::move(pending.back());
    pending.pop_back();
    next.reset();
  }
  queue = nullptr;
}

Expr MakeVar(std::string name, Type type, std::string virtual_device) {
  return Make(Var{std::move(name), std::move(virtual_device)}, std::move(type));
}

Expr MakeGlobalVar(std::string name, Type function_type) { return Make(GlobalVar{std::move(name)}, std::move(function_type)); }

Expr MakeConstant(Tensor value) {
  Type type = value.type();
  return Make(Constant{std::move(value)}, std::move(type));
}

Expr MakeOp(const OpDef* def) {
  static std::mutex mutex;
  static std::unordered_map<const OpDef*, Expr> nodes;
  const std::lock_guard lock(mutex);
  Expr& node = nodes[def];
  if (!node) node = Make(Op{def}, Type());
  return node;
}

Result<Expr> MakeCall(const OpDef* op, std::vector<Expr> args, Attributes attributes, Origin origin) {
  COLLAGE_CHECK(op != nullptr);
  return MakeCall(MakeOp(op), std::move(args), std::move(attributes), std::move(origin));
}

Result<Expr> MakeCall(Expr callee, std::vector<Expr> args, Attributes attributes, Origin origin) {
  Type type = COLLAGE_TRY(CallType(callee, args, attributes));
  return Make(Call{std::move(callee), std::move(args), std::move(attributes)}, std::move(type), std::move(origin));
}

Expr MakeTuple(std::vector<Expr> fields) {
  TupleType type;
  for (const Expr& field : fields) type.fields.push_back(field->type());
  return Make(Tuple{std::move(fields)}, std::move(type));
}

Result<Expr> MakeTupleGetItem(Expr tuple, size_t index) {
  const TupleType* type = tuple->type().AsTuple();
  if (!type) return Fail("projection ." + std::to_string(index) + " of a value of type " + ToString(tuple->type()) + ", expected a tuple");
  if (index >= type->fields.size()) {
    return Fail("projection ." + std::to_string(index) + " of a tuple of " + std::to_string(type->fields.size()) + " fields");
  }
  Type field = type->fields[index];
  return Make(TupleGetItem{std::move(tuple), index}, std::move(field));
}

Result<Expr> MakeLet(Expr variable, Expr value, Expr body) {
  if (!variable->As<Var>()) return Fail("let binds something that is not a variable");
  if (!(variable->type() == value->type())) {
    return Fail("let %" + variable->As<Var>()->name + " has type " + ToString(variable->type()) + " but its value has " +
                ToString(value->type()));
  }
  Type type = body->type();
  return Make(Let{std::move(variable), std::move(value), std::move(body)}, std::move(type));
}

Result<Expr> MakeIf(Expr condition, Expr then_branch, Expr else_branch) {
  const TensorType* type = condition->type().AsTensor();
  if (!type || !type->shape.empty() || type->dtype != DType::kBool) {
    return Fail("the condition of if has type " + ToString(condition->type()) + ", expected bool");
  }
  if (!(then_branch->type() == else_branch->type())) {
    return Fail("the branches of if have types " + ToString(then_branch->type()) + " and " + ToString(else_branch->type()) +
                ", expected one type");
  }
  Type result = then_branch->type();
  return Make(If{std::move(condition), std::move(then_branch), std::move(else_branch)}, std::move(result));
}

Result<Expr> MakeFunction(std::vector<Expr> parameters, Expr body, Attributes attributes, Type result_type) {
  FunctionType type;
  for (const Expr& parameter : parameters) {
    if (!parameter->As<Var>()) return Fail("a parameter of a function is not a variable");
    type.parameters.push_back(parameter->type());
  }
  if (!result_type.Defined()) result_type = body->type();
  if (!(result_type == body->type())) {
    return Fail("the function is declared to give " + ToString(result_type) + " but its body has type " + ToString(body->type()));
  }
  if (const AttributeValue* devices = attributes.Find("virtual_device")) {
    if (!devices->AsString()) return Fail("attribute 'virtual_device' is " + ToString(*devices) + ", expected a string");
    COLLAGE_TRY(ParseDevices(*devices->AsString(), result_type));
  }
  type.result = std::make_shared<const Type>(result_type);
  return Make(Function{std::move(parameters), std::move(body), std::move(result_type), std::move(attributes)}, std::move(type));
}

const OpDef* CalledOp(const Expr& expr) {
  const Call* call = expr->As<Call>();
  const Op* op = call ? call->callee->As<Op>() : nullptr;
  return op ? op->def : nullptr;
}

bool IsCallOf(const Expr& expr, std::string_view op_name) {
  const OpDef* op = CalledOp(expr);
  return op && op->name == op_name;
}

std::vector<Expr> Children(const Expr& expr) {
  std::vector<Expr> children;
  ExprNode::Value copy = expr->value();
  MoveChildren(copy, children);
  return children;
}

Result<Expr> WithChildren(const Expr& expr, std::vector<Expr> children) {
  const std::vector<Expr> old = Children(expr);
  COLLAGE_CHECK(old.size() == children.size());
  if (old == children) return expr;
  const auto tail = [&](size_t from) { return std::vector<Expr>(children.begin() + static_cast<std::ptrdiff_t>(from), children.end()); };
  if (const Call* call = expr->As<Call>()) {
    Result<Expr> made = MakeCall(children[0], tail(1), call->attributes, expr->origin());
    if (!made && !expr->origin().Empty()) return Fail(std::move(made).error().At(expr->origin().ToString()));
    return made;
  }
  if (expr->As<Tuple>()) return MakeTuple(std::move(children));
  if (const TupleGetItem* item = expr->As<TupleGetItem>()) return MakeTupleGetItem(children[0], item->index);
  if (expr->As<Let>()) return MakeLet(children[0], children[1], children[2]);
  if (expr->As<If>()) return MakeIf(children[0], children[1], children[2]);
  const Function* function = expr->As<Function>();
  COLLAGE_CHECK(function != nullptr);
  Expr body = children.back();
  children.pop_back();
  return MakeFunction(std::move(children), std::move(body), function->attributes);
}

Expr WithOrigin(const Expr& expr, Origin origin) {
  if (expr->origin() == origin) return expr;
  return Make(expr->value(), expr->type(), std::move(origin));
}

}  // namespace collage
