#include <unordered_set>

#include "collage/ir/literal.h"
#include "collage/ir/parser.h"
#include "collage/ir/virtual_device.h"

namespace collage {
namespace {

// Larger tensors are refused before anybody multiplies extents without care or allocates one.
constexpr int64_t kMostElements = int64_t{1} << 40;
// "%1 = (%0, %0); %2 = (%1, %1); ..." doubles the type of every line: types are trees, bounded here.
constexpr size_t kMostTypeNodes = 100'000;
constexpr size_t kDeepestType = 64;

// Counts the nodes of a type and gives up beyond the bounds.
bool Within(const Type& type, size_t depth, size_t& nodes) {
  if (depth > kDeepestType || ++nodes > kMostTypeNodes) return false;
  const auto all = [&](const std::vector<Type>& types) {
    for (const Type& part : types) {
      if (!Within(part, depth + 1, nodes)) return false;
    }
    return true;
  };
  if (const TupleType* tuple = type.AsTuple()) return all(tuple->fields);
  if (const FunctionType* function = type.AsFunction()) {
    return all(function->parameters) && Within(*function->result, depth + 1, nodes);
  }
  return true;
}

bool TooManyElements(const Shape& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) {
    if (extent < 0 || (extent > 0 && count > kMostElements / extent)) return true;
    if (extent > 0) count *= extent;
  }
  return false;
}

}  // namespace

Status Parser::CheckType(const Token& token, const Type& type) {
  size_t nodes = 0;
  if (!Within(type, 0, nodes)) return ErrorAt(token, "the type of this expression is too large or too deeply nested");
  for (const TensorType& tensor : FlattenTensors(type)) {
    if (TooManyElements(tensor.shape)) return ErrorAt(token, "a tensor of shape " + ToString(tensor.shape) + " is too large");
  }
  return {};
}

Status Parser::CheckTupleType(const Token& token, const std::vector<Expr>& fields) const {
  size_t nodes = 0;
  for (const Expr& field : fields) {
    if (!Within(field->type(), 1, nodes)) return ErrorAt(token, "the type of this tuple is too large or too deeply nested");
  }
  return {};
}

Result<int64_t> Parser::ParseInteger(const char* what) {
  if (token_.kind == Token::Kind::kNumber) {
    const Result<AttributeValue> value = AttributeFromLiteral(token_.text);
    if (const int64_t* integer = value ? value->AsInt() : nullptr) {
      const int64_t result = *integer;
      Step();
      return result;
    }
  }
  return Unexpected(what);
}

Result<Type> Parser::ParseTensorType() {
  const Token at = token_;
  Step();
  COLLAGE_TRY_STATUS(Expect("["));
  COLLAGE_TRY_STATUS(Expect("("));
  TensorType type;
  while (!At(")")) {
    const Token extent_at = token_;
    if (At("?")) return ErrorAt(extent_at, "the extent of a dimension is open, and types of a text are fixed: expected a number");
    const int64_t extent = COLLAGE_TRY(ParseInteger("the extent of a dimension"));
    if (extent < 0) return ErrorAt(extent_at, "the extent of a dimension is negative");
    type.shape.push_back(extent);
    if (!Accept(",")) break;
  }
  COLLAGE_TRY_STATUS(Expect(")"));
  COLLAGE_TRY_STATUS(Expect(","));
  const std::optional<DType> dtype = DTypeFromName(token_.text);
  if (token_.kind != Token::Kind::kIdentifier || !dtype) return Unexpected("a dtype such as float32");
  type.dtype = *dtype;
  Step();
  COLLAGE_TRY_STATUS(Expect("]"));
  COLLAGE_TRY_STATUS(CheckType(at, type));
  return Type(std::move(type));
}

Result<std::vector<Type>> Parser::ParseTypeList() {
  COLLAGE_TRY_STATUS(Expect("("));
  std::vector<Type> types;
  while (!At(")")) {
    types.push_back(COLLAGE_TRY(ParseType()));
    if (!Accept(",")) break;
  }
  COLLAGE_TRY_STATUS(Expect(")"));
  return types;
}

Result<Type> Parser::ParseFunctionType() {
  Step();
  FunctionType type;
  type.parameters = COLLAGE_TRY(ParseTypeList());
  COLLAGE_TRY_STATUS(Expect("->"));
  type.result = std::make_shared<const Type>(COLLAGE_TRY(ParseType()));
  return Type(std::move(type));
}

Result<Type> Parser::ParseType() {
  if (type_depth_ > kDeepestType) return ErrorAt(token_, "types are nested too deeply");
  const Token at = token_;
  ++type_depth_;
  Result<Type> type = Unexpected("a type such as Tensor[(1, 8), float32], float32, (T, U) or fn (T) -> U");
  if (AtWord("Tensor")) {
    type = ParseTensorType();
  } else if (AtWord("fn")) {
    type = ParseFunctionType();
  } else if (At("(")) {
    Result<std::vector<Type>> fields = ParseTypeList();
    if (fields) {
      type = Type(TupleType{std::move(*fields)});
    } else {
      type = Fail(std::move(fields).error());
    }
  } else if (const std::optional<DType> dtype = DTypeFromName(token_.text); dtype && token_.kind == Token::Kind::kIdentifier) {
    Step();
    type = Type(TensorType{{}, *dtype});
  }
  --type_depth_;
  if (type) COLLAGE_TRY_STATUS(CheckType(at, *type));
  return type;
}

Result<AttributeValue> Parser::ParseAttributeList(const char* close) {
  if (type_depth_ > kDeepestType) return ErrorAt(token_, "lists are nested too deeply");
  Step();
  ++type_depth_;
  AttributeValue::List list;
  while (!At(close)) {
    list.push_back(COLLAGE_TRY(ParseAttributeValue()));
    if (!Accept(",")) break;
  }
  --type_depth_;
  COLLAGE_TRY_STATUS(Expect(close));
  return AttributeValue(std::move(list));
}

Result<AttributeValue> Parser::ParseAttributeValue() {
  if (At("[")) return ParseAttributeList("]");
  if (At("(")) return ParseAttributeList(")");
  const Token token = token_;
  const bool word = token.kind == Token::Kind::kIdentifier;
  Result<AttributeValue> value = Unexpected("an attribute's value: a number, a string, True, False, None or a list");
  if (token.kind == Token::Kind::kNumber || (word && IsNumberWord(token.text))) {
    value = Located(token, AttributeFromLiteral(token.text));
  } else if (token.kind == Token::Kind::kString) {
    value = AttributeValue(Unescape(token.text));
  } else if (word && (token.text == "True" || token.text == "False")) {
    value = AttributeValue(token.text == "True");
  } else if (word && token.text == "None") {
    value = AttributeValue();
  } else if (word && DTypeFromName(token.text)) {
    value = AttributeValue(std::string(token.text));
  }
  if (value) Step();
  return value;
}

Status Parser::ParseAttribute(Attributes& attributes) {
  const Token name = token_;
  if (attributes.Has(name.text)) return ErrorAt(name, "attribute '" + std::string(name.text) + "' is given twice");
  Step();
  COLLAGE_TRY_STATUS(Expect("="));
  attributes.Set(std::string(name.text), COLLAGE_TRY(ParseAttributeValue()));
  return {};
}

// %name: type, or %name {virtual_device="cpu:0"}: type
Result<Expr> Parser::ParseParameter() {
  std::string name(token_.text);
  Step();
  Token devices_at;
  std::string devices;
  if (Accept("{")) {
    if (!AtWord("virtual_device")) return Unexpected("virtual_device=, which is all that is said of a parameter here");
    Step();
    COLLAGE_TRY_STATUS(Expect("="));
    if (token_.kind != Token::Kind::kString) return Unexpected("the devices of the parameter, as a string");
    devices_at = token_;
    devices = Unescape(token_.text);
    Step();
    COLLAGE_TRY_STATUS(Expect("}"));
  }
  COLLAGE_TRY_STATUS(Expect(":"));
  Type type = COLLAGE_TRY(ParseType());
  if (devices_at.kind == Token::Kind::kString) {
    if (const auto read = ParseDevices(devices, type); !read) return ErrorAt(devices_at, read.error().message);
  }
  return MakeVar(std::move(name), std::move(type), std::move(devices));
}

Result<Parser::Signature> Parser::ParseSignature() {
  COLLAGE_TRY_STATUS(Expect("("));
  Signature signature;
  std::unordered_set<std::string> names;
  while (!At(")")) {
    if (token_.kind == Token::Kind::kIdentifier) {
      COLLAGE_TRY_STATUS(ParseAttribute(signature.attributes));
    } else {
      if (token_.kind != Token::Kind::kLocal || !signature.attributes.Empty())
        return Unexpected("a parameter '%name: type', or an attribute");
      const std::string name(token_.text);
      if (!names.insert(name).second) return ErrorAt(token_, "two parameters have the name %" + name);
      signature.parameters.push_back(COLLAGE_TRY(ParseParameter()));
    }
    if (!Accept(",")) break;
  }
  COLLAGE_TRY_STATUS(Expect(")"));
  if (Accept("->")) signature.result = COLLAGE_TRY(ParseType());
  return signature;
}

}  // namespace collage
