#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "collage/ir/lexer.h"
#include "collage/ir/parse.h"
#include "collage/ir/scopes.h"

namespace collage {

/// Recursive descent over the tokens of one text (the implementation of parse.h). Recursion follows the nesting of brackets,
/// which is bounded; statements of one block are read in a loop, so that long programs need no stack.
class Parser {
 public:
  Parser(std::string_view text, const OpTable& ops, const ParseOptions& options);

  Result<ParsedModule> Module();
  Result<ParsedExpr> Expression();
  Result<Type> WholeType();

 private:
  struct Signature {
    std::vector<Expr> parameters;
    Attributes attributes;
    Type result;  // undefined when not declared
  };
  struct PendingLet {
    Token at;
    Expr variable;
    Expr value;
  };

  // Tokens.
  void Step();
  [[nodiscard]] bool At(std::string_view punctuation) const;
  [[nodiscard]] bool AtWord(std::string_view word) const;
  bool Accept(std::string_view punctuation);
  Status Expect(std::string_view punctuation);
  Status ExpectWord(std::string_view word);
  [[nodiscard]] tl::unexpected<Error> Unexpected(const std::string& expected) const;
  [[nodiscard]] static tl::unexpected<Error> ErrorAt(const Token& token, const std::string& message);
  [[nodiscard]] static Origin Place(const Token& token);
  // Puts the place in front of an error that a factory of expr.h reports.
  template <class T>
  static Result<T> Located(const Token& token, Result<T> result);

  // Types and attributes (parser_type.cc).
  Result<Type> ParseType();
  Result<Type> ParseTensorType();
  Result<std::vector<Type>> ParseTypeList();
  Result<Type> ParseFunctionType();
  Result<int64_t> ParseInteger(const char* what);
  Result<AttributeValue> ParseAttributeValue();
  Result<AttributeValue> ParseAttributeList(const char* close);
  Status ParseAttribute(Attributes& attributes);
  Result<Expr> ParseParameter();
  Result<Signature> ParseSignature();
  static Status CheckType(const Token& token, const Type& type);
  Status CheckTupleType(const Token& token, const std::vector<Expr>& fields) const;

  // Expressions (parser_expr.cc).
  Result<Expr> ParseScope();
  Status ParseGraphBinding();
  Status ParseLet(std::vector<PendingLet>& lets);
  Result<Expr> ParseExpression();
  Result<Expr> ParsePostfix();
  Result<Expr> ParsePrimary();
  Result<Expr> ParseWord();
  Result<Expr> ParseLocal();
  Result<Expr> ParseGlobal();
  Result<Expr> ParseScalar();
  Result<Expr> ParseParenthesised();
  /// Gives the number of the block too, whose owner is not made yet.
  Result<Expr> ParseBlock(size_t& block);
  void OwnBlock(size_t block, const Expr& owner, size_t part);
  Result<Expr> ParseIf();
  Result<Expr> ParseFunction(const std::string* recursive_name, Expr* variable);
  Result<Expr> ParseFunctionBody(const Token& at, Signature signature);
  Result<Expr> ParseCall(const Token& at, Expr callee);
  Result<Expr> ParseProjection(Expr tuple);

  // Constants of the table and modules (parser.cc).
  Result<Expr> ParseConstant();
  Result<Expr> MakeTableConstant(const Token& at, size_t index, std::string_view comment);
  Status ReadSignatures();
  Status SkipBlock();
  Status ParseDefinitions(ParsedModule& parsed);

  const OpTable& ops_;
  const ParseOptions& options_;
  Lexer lexer_;
  Token token_;
  Token next_;
  Scopes scopes_;
  std::unordered_map<std::string, Expr> globals_;  // null: defined, but the type is not known yet
  std::unordered_map<size_t, Expr> constants_;
  std::vector<TextBlock> blocks_;
  size_t depth_ = 0;
  size_t type_depth_ = 0;
};

template <class T>
Result<T> Parser::Located(const Token& token, Result<T> result) {
  if (result) return result;
  return ErrorAt(token, result.error().message);
}

}  // namespace collage
