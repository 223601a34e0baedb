#pragma once

// The functional IR: immutable expressions with shared structure. An expression's type is known when it is made: calls ask
// the operator's type rule, parameters and recursive functions carry annotations. So there is no untyped program and no
// inference pass that must run first; what is ill-typed cannot be built, and the factory says why. (Relay infers types in a
// separate pass over a whole module, which means that every pass has to run it again.)

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "collage/ir/attributes.h"
#include "collage/ir/op_def.h"
#include "collage/ir/origin.h"
#include "collage/ir/type.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

class ExprNode;
using Expr = std::shared_ptr<const ExprNode>;

/// A local variable; its identity is the node, the name is a hint. Printed as %name. A parameter may say where its tensors lie, as
/// the text of its devices (virtual_device.h): %name {virtual_device="cpu:0"}.
struct Var {
  std::string name;
  std::string virtual_device = {};
};
/// A function of the module; printed as @name.
struct GlobalVar {
  std::string name;
};
struct Constant {
  Tensor value;
};
/// A primitive operator as a callee.
struct Op {
  const OpDef* def;
};
/// Callee is an Op, a Function, a Var of function type or a GlobalVar.
struct Call {
  Expr callee;
  std::vector<Expr> args;
  Attributes attributes;
};
struct Tuple {
  std::vector<Expr> fields;
};
struct TupleGetItem {
  Expr tuple;
  size_t index;
};
struct Let {
  Expr variable;
  Expr value;
  Expr body;
};
struct If {
  Expr condition;
  Expr then_branch;
  Expr else_branch;
};
/// Parameters are Vars. Attributes in use: "Primitive", "Compiler", "Composite", "global_symbol", and "virtual_device", which says
/// where the result lies.
struct Function {
  std::vector<Expr> parameters;
  Expr body;
  Type result_type;
  Attributes attributes;
};

class ExprNode {
 public:
  using Value = std::variant<Var, GlobalVar, Constant, Op, Call, Tuple, TupleGetItem, Let, If, Function>;

  // Public for make_shared only; use the factories below.
  ExprNode(Value value, Type type, Origin origin) : value_(std::move(value)), type_(std::move(type)), origin_(std::move(origin)) {}
  ExprNode(const ExprNode&) = delete;
  ExprNode& operator=(const ExprNode&) = delete;
  /// Releases long chains without recursion.
  // NOLINTNEXTLINE(bugprone-exception-escape): see the definition
  ~ExprNode();

  [[nodiscard]] const Value& value() const { return value_; }
  [[nodiscard]] const Type& type() const { return type_; }
  /// Of calls, and of constants that calls were folded into; others have none.
  [[nodiscard]] const Origin& origin() const { return origin_; }
  template <class T>
  [[nodiscard]] const T* As() const {
    return std::get_if<T>(&value_);
  }

 private:
  Value value_;
  Type type_;
  Origin origin_;
};

Expr MakeVar(std::string name, Type type, std::string virtual_device = {});
Expr MakeGlobalVar(std::string name, Type function_type);
Expr MakeConstant(Tensor value);
/// One shared node an operator.
Expr MakeOp(const OpDef* def);
/// A call of an operator: `args` must fit its record; errors come from the type rule, with the operator named.
Result<Expr> MakeCall(const OpDef* op, std::vector<Expr> args, Attributes attributes = {}, Origin origin = {});
/// A call of any callee; for functions, argument types must equal parameter types.
Result<Expr> MakeCall(Expr callee, std::vector<Expr> args, Attributes attributes = {}, Origin origin = {});
Expr MakeTuple(std::vector<Expr> fields);
Result<Expr> MakeTupleGetItem(Expr tuple, size_t index);
Result<Expr> MakeLet(Expr variable, Expr value, Expr body);
Result<Expr> MakeIf(Expr condition, Expr then_branch, Expr else_branch);
/// `result_type` undefined means the body's; otherwise they must agree. So must the form of the attribute "virtual_device".
Result<Expr> MakeFunction(std::vector<Expr> parameters, Expr body, Attributes attributes = {}, Type result_type = {});

/// The operator that an expression calls, or null when it is not a call of an operator.
const OpDef* CalledOp(const Expr& expr);
/// True for a call of the operator of that name.
bool IsCallOf(const Expr& expr, std::string_view op_name);
/// Direct sub-expressions, in evaluation order: a call's callee first (operators too), then its arguments; a function's
/// parameters, then its body; let's variable, value and body; if's condition and branches.
std::vector<Expr> Children(const Expr& expr);
/// The same node with other children (as many and in the order of Children), types checked again. Shares the node where
/// no child changed. Keeps the origin, which errors name.
Result<Expr> WithChildren(const Expr& expr, std::vector<Expr> children);
/// The same node with another origin. Shares the node where that is the same.
Expr WithOrigin(const Expr& expr, Origin origin);

}  // namespace collage
