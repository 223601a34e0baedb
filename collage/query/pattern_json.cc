#include "collage/query/pattern_json.h"

#include <array>
#include <optional>
#include <set>

#include "collage/ir/parse.h"
#include "collage/op/table.h"

namespace collage {
namespace {

Result<Type> TypeFrom(const JsonReader& reader) {
  if (reader.IsString()) {
    Result<Type> type = ParseTypeText(*reader.String());
    return type ? std::move(type) : reader.Wrong(type.error().message);
  }
  if (reader.IsList()) {
    TupleType tuple;
    for (const JsonReader& field : COLLAGE_TRY(reader.Items())) tuple.fields.push_back(COLLAGE_TRY(TypeFrom(field)));
    return Type(std::move(tuple));
  }
  COLLAGE_TRY_STATUS(reader.OnlyFields({"shape", "dtype"}));
  TensorType tensor;
  tensor.shape = COLLAGE_TRY(COLLAGE_TRY(reader.At("shape")).Integers());
  const std::string dtype = COLLAGE_TRY(reader.StringOr("dtype", "float32"));
  const std::optional<DType> known = DTypeFromName(dtype);
  if (!known) return reader.Wrong("there is no dtype \"" + dtype + "\"");
  tensor.dtype = *known;
  return Type(std::move(tensor));
}

class PatternReader {
 public:
  Result<Pattern> Read(const JsonReader& reader) {
    Pattern read = COLLAGE_TRY(Any(reader));
    for (const auto& [name, place] : same_) {
      if (!named_.contains(name)) return Fail(place + ": no part of the pattern is named \"" + name + "\" by \"as\"");
    }
    return read;
  }

 private:
  Result<Pattern> Any(const JsonReader& reader) {
    if (depth_ >= kDeepestPattern) return reader.Wrong("the pattern is nested more than " + std::to_string(kDeepestPattern) + " deep");
    ++depth_;
    Result<Pattern> read = OfAnyForm(reader);
    --depth_;
    return read;
  }

  Result<Pattern> OfAnyForm(const JsonReader& reader) {
    if (reader.IsText("*")) return pattern::Wildcard();
    if (reader.IsText("<>")) {
      if (inner_.empty()) return reader.Wrong("\"<>\" stands for the inner pattern of an optional, expected it inside of \"outer\"");
      return inner_.back();
    }
    if (!reader.IsObject()) return reader.Expected("a pattern: \"*\" or an object such as {\"call\": .., \"args\": ..}");
    Pattern read = COLLAGE_TRY(Object(reader));
    if (!reader.Has("as")) return read;
    const std::string name = COLLAGE_TRY(COLLAGE_TRY(reader.At("as")).String());
    if (name.empty()) return reader.Wrong("\"as\" is empty, expected a name");
    named_.insert(name);
    return read.As(name);
  }

  Result<Pattern> Object(const JsonReader& reader) {
    struct Form {
      const char* field;
      Result<Pattern> (PatternReader::*read)(const JsonReader&);
    };
    static constexpr std::array<Form, 17> kForms = {{{"wildcard", &PatternReader::Wildcard},
                                                     {"op", &PatternReader::Operator},
                                                     {"call", &PatternReader::Call},
                                                     {"variable", &PatternReader::Variable},
                                                     {"constant", &PatternReader::Constant},
                                                     {"tuple", &PatternReader::Tuple},
                                                     {"projection", &PatternReader::Projection},
                                                     {"or", &PatternReader::Or},
                                                     {"optional", &PatternReader::Optional},
                                                     {"type", &PatternReader::OfType},
                                                     {"dtype", &PatternReader::OfDType},
                                                     {"shape", &PatternReader::OfShape},
                                                     {"attributes", &PatternReader::WithAttributes},
                                                     {"same", &PatternReader::Same},
                                                     {"if", &PatternReader::If},
                                                     {"let", &PatternReader::Let},
                                                     {"function", &PatternReader::Function}}};
    if (reader.Has("dominator")) return Dominator(reader);
    std::string all = "dominator";
    for (const Form& form : kForms) {
      if (reader.Has(form.field)) return (this->*form.read)(reader);
      all += std::string(", ") + form.field;
    }
    return reader.Expected("a pattern with one of the fields " + all);
  }

  Result<Pattern> Part(const JsonReader& reader, const char* field) { return Any(COLLAGE_TRY(reader.At(field))); }

  Result<std::vector<Pattern>> Parts(const JsonReader& list) {
    std::vector<Pattern> parts;
    for (const JsonReader& item : COLLAGE_TRY(list.Items())) parts.push_back(COLLAGE_TRY(Any(item)));
    return parts;
  }

  /// The pattern that a constraint is about; anything when it does not say.
  Result<Pattern> Constrained(const JsonReader& reader) {
    if (!reader.Has("of")) return pattern::Wildcard();
    return Part(reader, "of");
  }

  static Result<std::string> OperatorName(const JsonReader& reader) {
    std::string name = COLLAGE_TRY(reader.String());
    if (!Operators().Find(name)) return reader.Wrong("there is no operator \"" + name + "\"");
    return name;
  }

  Result<Pattern> Wildcard(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"wildcard", "as"}));
    if (!COLLAGE_TRY(COLLAGE_TRY(reader.At("wildcard")).Bool())) return reader.Expected("{\"wildcard\": true}");
    return pattern::Wildcard();
  }

  Result<Pattern> Operator(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"op", "as"}));
    return pattern::IsOp(COLLAGE_TRY(OperatorName(COLLAGE_TRY(reader.At("op")))));
  }

  Result<Pattern> Call(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"call", "args", "as"}));
    const JsonReader what = COLLAGE_TRY(reader.At("call"));
    const bool by_name = what.IsString() && !what.IsText("*") && !what.IsText("<>");
    Pattern callee = by_name ? pattern::IsOp(COLLAGE_TRY(OperatorName(what))) : COLLAGE_TRY(Any(what));
    if (!reader.Has("args") || reader.value()["args"].is_null()) return pattern::CallOf(std::move(callee));
    return pattern::CallOf(std::move(callee), COLLAGE_TRY(Parts(COLLAGE_TRY(reader.At("args")))));
  }

  Result<Pattern> Variable(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"variable", "as"}));
    const JsonReader what = COLLAGE_TRY(reader.At("variable"));
    if (what.IsNull() || what.IsText("*") || what.IsText("") || (what.value().is_boolean() && what.value().get<bool>()))
      return pattern::IsVariable();
    std::string name = COLLAGE_TRY(what.String());
    return pattern::IsVariable(name.starts_with('%') ? name.substr(1) : name);
  }

  Result<Pattern> Constant(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"constant", "as"}));
    const JsonReader what = COLLAGE_TRY(reader.At("constant"));
    if (what.IsNumber()) return pattern::IsScalar(*what.Number());
    if (!what.value().is_boolean() || !what.value().get<bool>()) return what.Expected("true (any constant) or the value of a scalar");
    return pattern::IsConstant();
  }

  Result<Pattern> Tuple(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"tuple", "as"}));
    const JsonReader fields = COLLAGE_TRY(reader.At("tuple"));
    if (fields.IsNull()) return pattern::AnyTuple();
    return pattern::IsTuple(COLLAGE_TRY(Parts(fields)));
  }

  Result<Pattern> Projection(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"projection", "index", "as"}));
    Pattern tuple = COLLAGE_TRY(Part(reader, "projection"));
    return pattern::Projection(std::move(tuple), COLLAGE_TRY(COLLAGE_TRY(reader.At("index")).Count()));
  }

  Result<Pattern> Or(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"or", "as"}));
    const JsonReader list = COLLAGE_TRY(reader.At("or"));
    std::vector<Pattern> alternatives = COLLAGE_TRY(Parts(list));
    if (alternatives.empty()) return list.Expected("at least one alternative");
    return pattern::Or(std::move(alternatives));
  }

  Result<Pattern> Optional(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"optional", "as"}));
    const JsonReader parts = COLLAGE_TRY(reader.At("optional"));
    COLLAGE_TRY_STATUS(parts.OnlyFields({"inner", "outer"}));
    const Pattern inner = COLLAGE_TRY(Part(parts, "inner"));
    inner_.push_back(inner);
    Result<Pattern> outer = Part(parts, "outer");
    inner_.pop_back();
    if (!outer) return outer;
    return pattern::Or({*outer, inner});
  }

  Result<Pattern> OfType(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"type", "of", "as"}));
    Type type = COLLAGE_TRY(TypeFrom(COLLAGE_TRY(reader.At("type"))));
    return pattern::HasType(COLLAGE_TRY(Constrained(reader)), std::move(type));
  }

  Result<Pattern> OfDType(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"dtype", "of", "as"}));
    const JsonReader name = COLLAGE_TRY(reader.At("dtype"));
    const std::optional<DType> dtype = DTypeFromName(COLLAGE_TRY(name.String()));
    if (!dtype) return name.Wrong("there is no dtype \"" + *name.String() + "\"");
    return pattern::HasDType(COLLAGE_TRY(Constrained(reader)), *dtype);
  }

  Result<Pattern> OfShape(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"shape", "of", "as"}));
    Shape shape = COLLAGE_TRY(COLLAGE_TRY(reader.At("shape")).Integers());
    return pattern::HasShape(COLLAGE_TRY(Constrained(reader)), std::move(shape));
  }

  Result<Pattern> WithAttributes(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"attributes", "of", "as"}));
    Attributes attributes = COLLAGE_TRY(AttributesFrom(COLLAGE_TRY(reader.At("attributes"))));
    return pattern::HasAttributes(COLLAGE_TRY(Constrained(reader)), std::move(attributes));
  }

  Result<Pattern> Same(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"same"}));
    const JsonReader name = COLLAGE_TRY(reader.At("same"));
    same_.emplace_back(COLLAGE_TRY(name.String()), name.place());
    return pattern::Same(same_.back().first);
  }

  Result<Pattern> If(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"if", "as"}));
    const JsonReader list = COLLAGE_TRY(reader.At("if"));
    const std::vector<Pattern> parts = COLLAGE_TRY(Parts(list));
    if (parts.size() != 3) return list.Expected("three patterns: condition, branch taken when true, branch taken when false");
    return pattern::IsIf(parts[0], parts[1], parts[2]);
  }

  Result<Pattern> Let(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"let", "as"}));
    const JsonReader list = COLLAGE_TRY(reader.At("let"));
    const std::vector<Pattern> parts = COLLAGE_TRY(Parts(list));
    if (parts.size() != 3) return list.Expected("three patterns: variable, value, body");
    return pattern::IsLet(parts[0], parts[1], parts[2]);
  }

  Result<Pattern> Function(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"function", "as"}));
    const JsonReader parts = COLLAGE_TRY(reader.At("function"));
    COLLAGE_TRY_STATUS(parts.OnlyFields({"parameters", "body"}));
    Pattern body = COLLAGE_TRY(Part(parts, "body"));
    if (!parts.Has("parameters") || parts.value()["parameters"].is_null()) return pattern::IsFunction(std::move(body));
    return pattern::IsFunction(COLLAGE_TRY(Parts(COLLAGE_TRY(parts.At("parameters")))), std::move(body));
  }

  Result<Pattern> Dominator(const JsonReader& reader) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"dominator", "as"}));
    const JsonReader parts = COLLAGE_TRY(reader.At("dominator"));
    COLLAGE_TRY_STATUS(parts.OnlyFields({"parent", "path", "child"}));
    Pattern parent = COLLAGE_TRY(Part(parts, "parent"));
    Pattern path = COLLAGE_TRY(Part(parts, "path"));
    return pattern::Dominator(std::move(parent), std::move(path), COLLAGE_TRY(Part(parts, "child")));
  }

  size_t depth_ = 0;
  std::vector<Pattern> inner_;  // of the optionals around
  std::set<std::string> named_;
  std::vector<std::pair<std::string, std::string>> same_;  // and where
};

}  // namespace

Result<Pattern> PatternFrom(const JsonReader& reader) { return PatternReader().Read(reader); }

}  // namespace collage
