#include "collage/ir/permitted_precision.h"

#include <string>

#include "collage/support/check.h"

namespace collage {

std::optional<Precision> PermittedPrecision(const Function& function) {
  const AttributeValue* value = function.attributes.Find(kPrecisionAttribute);
  const std::string* text = value ? value->AsString() : nullptr;
  if (!text) return std::nullopt;
  const Result<Precision> precision = Precision::Parse(*text);
  return precision ? std::optional(*precision) : std::nullopt;
}

bool Permits(const Function& function, DType stored) {
  const std::optional<Precision> precision = PermittedPrecision(function);
  return precision && precision->stored == stored;
}

Expr WithPrecision(const Expr& function, const Precision& precision) {
  const Function* literal = function->As<Function>();
  COLLAGE_CHECK(literal);
  Attributes attributes = literal->attributes;
  attributes.Set(std::string(kPrecisionAttribute), ToString(precision));
  Result<Expr> permitted = MakeFunction(literal->parameters, literal->body, std::move(attributes), literal->result_type);
  COLLAGE_CHECK(permitted.has_value(), permitted ? "" : permitted.error().message);
  return *permitted;
}

}  // namespace collage
