#include "collage/ir/parser.h"

#include "collage/ir/parse.h"
#include "collage/tensor/narrow.h"

namespace collage {
namespace {

// More than a machine holds; a text can ask for any shape.
constexpr size_t kMostConstantBytes = size_t{1} << 33;

Result<Tensor> Allocate(size_t index, const TensorType& type) {
  if (type.ByteCount() <= kMostConstantBytes) return Tensor(type);
  return Fail("constant " + std::to_string(index) + " of type " + ToString(type) + " is too large to be made up");
}

std::string Describe(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kEnd:
      return "the end of the text";
    case Token::Kind::kLocal:
      return "'%" + std::string(token.text) + "'";
    case Token::Kind::kGlobal:
      return "'@" + std::string(token.text) + "'";
    case Token::Kind::kString:
      return "a string";
    default:
      return "'" + std::string(token.text) + "'";
  }
}

}  // namespace

MissingConstant RandomConstants(uint64_t seed) {
  return [seed](size_t index, const TensorType& type) -> Result<Tensor> {
    Tensor tensor = COLLAGE_TRY(Allocate(index, type));
    if (!IsNarrow(type.dtype)) FillRandom(tensor, seed + index);
    return tensor;
  };
}

MissingConstant ZeroConstants() { return Allocate; }

Result<ParsedModule> ParseModule(std::string_view text, const OpTable& ops, const ParseOptions& options) {
  return Parser(text, ops, options).Module();
}

Result<ParsedExpr> ParseExpr(std::string_view text, const OpTable& ops, const ParseOptions& options) {
  return Parser(text, ops, options).Expression();
}

Result<Type> ParseTypeText(std::string_view text) {
  const OpTable none;
  const ParseOptions options;
  return Parser(text, none, options).WholeType();
}

Parser::Parser(std::string_view text, const OpTable& ops, const ParseOptions& options) : ops_(ops), options_(options), lexer_(text) {
  token_ = lexer_.Next();
  next_ = lexer_.Next();
}

void Parser::Step() {
  token_ = next_;
  if (token_.kind != Token::Kind::kEnd && token_.kind != Token::Kind::kError) next_ = lexer_.Next();
}

bool Parser::At(std::string_view punctuation) const { return token_.kind == Token::Kind::kPunctuation && token_.text == punctuation; }

bool Parser::AtWord(std::string_view word) const { return token_.kind == Token::Kind::kIdentifier && token_.text == word; }

bool Parser::Accept(std::string_view punctuation) {
  if (!At(punctuation)) return false;
  Step();
  return true;
}

Status Parser::Expect(std::string_view punctuation) {
  if (Accept(punctuation)) return {};
  return Unexpected("'" + std::string(punctuation) + "'");
}

Status Parser::ExpectWord(std::string_view word) {
  if (!AtWord(word)) return Unexpected("'" + std::string(word) + "'");
  Step();
  return {};
}

tl::unexpected<Error> Parser::ErrorAt(const Token& token, const std::string& message) {
  return Fail(std::to_string(token.line) + ":" + std::to_string(token.column) + ": " + message);
}

Origin Parser::Place(const Token& token) {
  constexpr size_t kColumnBits = 32;
  return Origin({OriginPart::Kind::kTextPlace, std::to_string(token.line) + ":" + std::to_string(token.column),
                 token.line << kColumnBits | token.column});
}

tl::unexpected<Error> Parser::Unexpected(const std::string& expected) const {
  if (token_.kind == Token::Kind::kError) return ErrorAt(token_, std::string(token_.text));
  return ErrorAt(token_, "found " + Describe(token_) + ", expected " + expected);
}

Result<Expr> Parser::ParseConstant() {
  const Token at = token_;
  Step();
  COLLAGE_TRY_STATUS(Expect("["));
  COLLAGE_TRY_STATUS(ExpectWord("relay.Constant"));
  COLLAGE_TRY_STATUS(Expect("]"));
  COLLAGE_TRY_STATUS(Expect("["));
  const int64_t index = COLLAGE_TRY(ParseInteger("the number of a constant"));
  if (index < 0) return ErrorAt(at, "the number of a constant is negative");
  COLLAGE_TRY_STATUS(Expect("]"));
  return MakeTableConstant(at, static_cast<size_t>(index), token_.comment);
}

Result<Expr> Parser::MakeTableConstant(const Token& at, size_t index, std::string_view comment) {
  const size_t type_starts = comment.find("Tensor[");
  std::optional<TensorType> stated;
  if (type_starts != std::string_view::npos) {
    Result<Type> type = Parser(comment.substr(type_starts), ops_, options_).ParseType();
    if (!type) return ErrorAt(at, "the type of constant " + std::to_string(index) + " in the comment behind it: " + type.error().message);
    stated = *type->AsTensor();
  }
  Expr& constant = constants_[index];
  const std::vector<Tensor>& table = options_.constants;
  if (!constant && index < table.size() && table[index].Defined()) constant = MakeConstant(table[index]);
  if (!constant) {
    const std::string name = options_.table_name.empty() ? "the table of " + std::to_string(table.size()) : options_.table_name;
    const std::string missing = "constant " + std::to_string(index) + " is not in " + name;
    if (!options_.missing_constant) return ErrorAt(at, missing);
    if (!stated) return ErrorAt(at, missing + ", expected a comment behind it with its type, /*Tensor[(..), dtype]*/");
    constant = MakeConstant(COLLAGE_TRY(Located(at, options_.missing_constant(index, *stated))));
  }
  if (stated && !(constant->type() == Type(*stated))) {
    return ErrorAt(
        at, "constant " + std::to_string(index) + " has type " + ToString(constant->type()) + " but the comment says " + ToString(*stated));
  }
  return constant;
}

Status Parser::SkipBlock() {
  COLLAGE_TRY_STATUS(Expect("{"));
  for (size_t open = 1; open > 0; Step()) {
    if (token_.kind == Token::Kind::kEnd || token_.kind == Token::Kind::kError) return Unexpected("'}'");
    if (At("{")) ++open;
    if (At("}")) --open;
  }
  return {};
}

Status Parser::ReadSignatures() {
  while (token_.kind != Token::Kind::kEnd) {
    COLLAGE_TRY_STATUS(ExpectWord("def"));
    if (token_.kind != Token::Kind::kGlobal) return Unexpected("the name of the function, '@name'");
    const std::string name(token_.text);
    if (globals_.contains(name)) return ErrorAt(token_, "@" + name + " is defined twice");
    Step();
    const Signature signature = COLLAGE_TRY(ParseSignature());
    COLLAGE_TRY_STATUS(SkipBlock());
    Expr& global = globals_[name];
    if (!signature.result.Defined()) continue;
    FunctionType type;
    for (const Expr& parameter : signature.parameters) type.parameters.push_back(parameter->type());
    type.result = std::make_shared<const Type>(signature.result);
    global = MakeGlobalVar(name, std::move(type));
  }
  return {};
}

Status Parser::ParseDefinitions(ParsedModule& parsed) {
  while (token_.kind != Token::Kind::kEnd) {
    const Token at = token_;
    COLLAGE_TRY_STATUS(ExpectWord("def"));
    const std::string name(token_.text);
    Step();
    Expr function = COLLAGE_TRY(ParseFunctionBody(at, COLLAGE_TRY(ParseSignature())));
    Expr& global = globals_[name];
    if (!global) global = MakeGlobalVar(name, function->type());
    parsed.names[name] = scopes_.TakeNames();
    parsed.bindings[name] = scopes_.TakeBindings();
    parsed.module.Set(name, std::move(function));
  }
  return {};
}

Result<ParsedModule> Parser::Module() {
  // "v0.0.4": the version line of Relay's own text files.
  if (token_.kind == Token::Kind::kIdentifier && token_.text.starts_with("v0")) {
    while (token_.kind == Token::Kind::kIdentifier || token_.kind == Token::Kind::kNumber || At(".")) {
      if (AtWord("fn") || AtWord("def")) break;
      Step();
    }
  }
  ParsedModule parsed;
  if (AtWord("fn")) {
    Expr function = COLLAGE_TRY(ParseFunction(nullptr, nullptr));
    if (token_.kind != Token::Kind::kEnd)
      return Unexpected("the end of the text (a module of several functions is written with 'def @name')");
    parsed.names["main"] = scopes_.TakeNames();
    parsed.bindings["main"] = scopes_.TakeBindings();
    parsed.module.Set("main", std::move(function));
    for (const auto& [index, constant] : constants_) parsed.constants.emplace(constant.get(), index);
    parsed.blocks = std::move(blocks_);
    return parsed;
  }
  if (token_.kind == Token::Kind::kEnd) return Unexpected("'fn' or 'def'");
  const Lexer lexer = lexer_;
  const Token token = token_;
  const Token next = next_;
  COLLAGE_TRY_STATUS(ReadSignatures());
  lexer_ = lexer;
  token_ = token;
  next_ = next;
  COLLAGE_TRY_STATUS(ParseDefinitions(parsed));
  for (const auto& [index, constant] : constants_) parsed.constants.emplace(constant.get(), index);
  parsed.blocks = std::move(blocks_);
  return parsed;
}

Result<Type> Parser::WholeType() {
  Type type = COLLAGE_TRY(ParseType());
  if (token_.kind != Token::Kind::kEnd) return Unexpected("the end of the type");
  return type;
}

Result<ParsedExpr> Parser::Expression() {
  scopes_.Push(false);
  for (const Expr& variable : options_.variables) scopes_.Bind(variable->As<Var>()->name, variable);
  Expr expr = COLLAGE_TRY(ParseScope());
  if (token_.kind != Token::Kind::kEnd) return Unexpected("the end of the text");
  return ParsedExpr{std::move(expr), scopes_.TakeNames()};
}

}  // namespace collage
