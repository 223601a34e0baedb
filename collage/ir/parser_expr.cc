#include "collage/ir/literal.h"
#include "collage/ir/parser.h"

namespace collage {
namespace {

// Brackets within brackets. Far beyond what the printer makes or a person reads; each level takes several frames of stack.
constexpr size_t kDeepestNesting = 200;

}  // namespace

Result<Expr> Parser::ParseScope() {
  std::vector<PendingLet> lets;
  for (;;) {
    if (AtWord("let")) {
      COLLAGE_TRY_STATUS(ParseLet(lets));
    } else if (token_.kind == Token::Kind::kLocal && next_.kind == Token::Kind::kPunctuation && next_.text == "=") {
      COLLAGE_TRY_STATUS(ParseGraphBinding());
    } else {
      break;
    }
  }
  Expr result = COLLAGE_TRY(ParseExpression());
  for (; !lets.empty(); lets.pop_back()) {
    PendingLet& let = lets.back();
    result = COLLAGE_TRY(Located(let.at, MakeLet(std::move(let.variable), std::move(let.value), std::move(result))));
  }
  return result;
}

Status Parser::ParseGraphBinding() {
  const std::string name(token_.text);
  Step();
  Step();
  const Expr value = COLLAGE_TRY(ParseExpression());
  COLLAGE_TRY_STATUS(Expect(";"));
  scopes_.Bind(name, value);
  return {};
}

Status Parser::ParseLet(std::vector<PendingLet>& lets) {
  Step();
  if (token_.kind != Token::Kind::kLocal) return Unexpected("the variable that let binds");
  PendingLet let{token_, nullptr, nullptr};
  const std::string name(token_.text);
  Step();
  if (Accept(":")) let.variable = MakeVar(name, COLLAGE_TRY(ParseType()));
  COLLAGE_TRY_STATUS(Expect("="));
  let.value = AtWord("fn") ? COLLAGE_TRY(ParseFunction(&name, &let.variable)) : COLLAGE_TRY(ParseExpression());
  COLLAGE_TRY_STATUS(Expect(";"));
  if (!let.variable) let.variable = MakeVar(name, let.value->type());
  if (!(let.variable->type() == let.value->type())) {
    return ErrorAt(let.at, "%" + name + " is declared as " + ToString(let.variable->type()) + " but its value has type " +
                               ToString(let.value->type()));
  }
  scopes_.Bind(name, let.variable);
  lets.push_back(std::move(let));
  return {};
}

Result<Expr> Parser::ParseExpression() {
  if (depth_ >= kDeepestNesting) {
    return ErrorAt(token_,
                   "expressions are nested more than " + std::to_string(kDeepestNesting) + " deep; bind inner ones with '%0 = ...;'");
  }
  ++depth_;
  Result<Expr> expr = ParsePostfix();
  --depth_;
  return expr;
}

Result<Expr> Parser::ParsePostfix() {
  const Token at = token_;
  Expr expr = COLLAGE_TRY(ParsePrimary());
  for (;;) {
    if (At("(")) {
      expr = COLLAGE_TRY(ParseCall(at, std::move(expr)));
    } else if (At(".")) {
      expr = COLLAGE_TRY(ParseProjection(std::move(expr)));
    } else {
      return expr;
    }
  }
}

Result<Expr> Parser::ParsePrimary() {
  if (token_.kind == Token::Kind::kLocal) return ParseLocal();
  if (token_.kind == Token::Kind::kGlobal) return ParseGlobal();
  if (token_.kind == Token::Kind::kNumber) return ParseScalar();
  if (At("(")) return ParseParenthesised();
  if (token_.kind == Token::Kind::kIdentifier) return ParseWord();
  return Unexpected("an expression");
}

Result<Expr> Parser::ParseWord() {
  if (AtWord("fn")) return ParseFunction(nullptr, nullptr);
  if (AtWord("if")) return ParseIf();
  if (AtWord("meta")) return ParseConstant();
  if (AtWord("True") || AtWord("False")) {
    const bool value = token_.text == "True";
    Step();
    return MakeConstant(Tensor::Scalar(value, DType::kBool));
  }
  if (IsNumberWord(token_.text)) return ParseScalar();
  const OpDef* op = ops_.Find(token_.text);
  if (!op) return Unexpected("an operator, a variable, a number, fn or if");
  if (next_.kind != Token::Kind::kPunctuation || next_.text != "(") {
    return ErrorAt(token_, "the operator " + op->name + " is not called, expected '(' behind it");
  }
  Step();
  return MakeOp(op);
}

Result<Expr> Parser::ParseLocal() {
  Expr expr = scopes_.Find(std::string(token_.text));
  if (!expr) {
    return ErrorAt(token_, "%" + std::string(token_.text) +
                               " is not bound here, expected a parameter or a binding that stands before this use (a function that "
                               "calls itself must declare its result type)");
  }
  Step();
  return expr;
}

Result<Expr> Parser::ParseGlobal() {
  const auto at = globals_.find(std::string(token_.text));
  if (at == globals_.end()) return ErrorAt(token_, "@" + std::string(token_.text) + " is not defined in this module");
  if (!at->second) return ErrorAt(token_, "@" + std::string(token_.text) + " is used before its end but does not declare its result type");
  Step();
  return at->second;
}

Result<Expr> Parser::ParseScalar() {
  const Token at = token_;
  Tensor value = COLLAGE_TRY(Located(at, ScalarFromLiteral(at.text)));
  Step();
  return MakeConstant(std::move(value));
}

Result<Expr> Parser::ParseParenthesised() {
  const Token at = token_;
  Step();
  if (Accept(")")) return MakeTuple({});
  scopes_.Push(false);
  Expr first = COLLAGE_TRY(ParseScope());
  scopes_.Pop();
  if (Accept(")")) return first;
  std::vector<Expr> fields = {std::move(first)};
  while (Accept(",") && !At(")")) fields.push_back(COLLAGE_TRY(ParseExpression()));
  COLLAGE_TRY_STATUS(Expect(")"));
  COLLAGE_TRY_STATUS(CheckTupleType(at, fields));
  return MakeTuple(std::move(fields));
}

void Parser::OwnBlock(size_t block, const Expr& owner, size_t part) {
  if (block >= blocks_.size()) blocks_.resize(block + 1);
  blocks_[block] = {owner.get(), part};
}

Result<Expr> Parser::ParseBlock(size_t& block) {
  COLLAGE_TRY_STATUS(Expect("{"));
  block = scopes_.PushBlock();
  Expr result = COLLAGE_TRY(ParseScope());
  scopes_.Pop();
  COLLAGE_TRY_STATUS(Expect("}"));
  return result;
}

Result<Expr> Parser::ParseIf() {
  const Token at = token_;
  Step();
  COLLAGE_TRY_STATUS(Expect("("));
  Expr condition = COLLAGE_TRY(ParseExpression());
  COLLAGE_TRY_STATUS(Expect(")"));
  size_t then_block = 0;
  size_t else_block = 0;
  Expr then_branch = COLLAGE_TRY(ParseBlock(then_block));
  COLLAGE_TRY_STATUS(ExpectWord("else"));
  Expr else_branch = COLLAGE_TRY(ParseBlock(else_block));
  Expr branch = COLLAGE_TRY(Located(at, MakeIf(std::move(condition), std::move(then_branch), std::move(else_branch))));
  OwnBlock(then_block, branch, 0);
  OwnBlock(else_block, branch, 1);
  return branch;
}

Result<Expr> Parser::ParseFunction(const std::string* recursive_name, Expr* variable) {
  const Token at = token_;
  Step();
  Signature signature = COLLAGE_TRY(ParseSignature());
  if (recursive_name && signature.result.Defined() && !*variable) {
    FunctionType type;
    for (const Expr& parameter : signature.parameters) type.parameters.push_back(parameter->type());
    type.result = std::make_shared<const Type>(signature.result);
    *variable = MakeVar(*recursive_name, std::move(type));
  }
  if (!recursive_name || !*variable) return ParseFunctionBody(at, std::move(signature));
  scopes_.Push(false);
  scopes_.Bind(*recursive_name, *variable);
  Expr function = COLLAGE_TRY(ParseFunctionBody(at, std::move(signature)));
  scopes_.Pop();
  return function;
}

Result<Expr> Parser::ParseFunctionBody(const Token& at, Signature signature) {
  scopes_.Push(true);
  for (const Expr& parameter : signature.parameters) scopes_.Bind(parameter->As<Var>()->name, parameter);
  size_t block = 0;
  Expr body = COLLAGE_TRY(ParseBlock(block));
  scopes_.Pop();
  Expr function = COLLAGE_TRY(
      Located(at, MakeFunction(std::move(signature.parameters), std::move(body), std::move(signature.attributes), signature.result)));
  COLLAGE_TRY_STATUS(CheckType(at, function->type()));
  OwnBlock(block, function, 0);
  return function;
}

Result<Expr> Parser::ParseCall(const Token& at, Expr callee) {
  Step();
  std::vector<Expr> args;
  Attributes attributes;
  while (!At(")")) {
    const bool named = token_.kind == Token::Kind::kIdentifier && next_.kind == Token::Kind::kPunctuation && next_.text == "=";
    if (named) {
      COLLAGE_TRY_STATUS(ParseAttribute(attributes));
    } else {
      if (!attributes.Empty()) return Unexpected("an attribute 'name=value' (arguments stand before attributes)");
      args.push_back(COLLAGE_TRY(ParseExpression()));
    }
    if (!Accept(",")) break;
  }
  COLLAGE_TRY_STATUS(Expect(")"));
  Expr call = COLLAGE_TRY(Located(at, MakeCall(std::move(callee), std::move(args), std::move(attributes), Place(at))));
  COLLAGE_TRY_STATUS(CheckType(at, call->type()));
  return call;
}

Result<Expr> Parser::ParseProjection(Expr tuple) {
  const Token at = token_;
  Step();
  const int64_t index = COLLAGE_TRY(ParseInteger("the number of a tuple's field"));
  if (index < 0) return ErrorAt(at, "the number of a tuple's field is negative");
  return Located(at, MakeTupleGetItem(std::move(tuple), static_cast<size_t>(index)));
}

}  // namespace collage
