#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collage/ir/attributes.h"
#include "collage/support/result.h"

namespace collage {

/// Answers keep the order in which their fields are written.
using Json = nlohmann::ordered_json;

/// A value of a JSON document and the place where it stands, so that every error says which part of a case is wrong:
/// "query.rule.of[1].pattern: found 3, expected ..". The document must outlive the reader.
class JsonReader {
 public:
  JsonReader(const Json& value, std::string place) : value_(&value), place_(std::move(place)) {}

  [[nodiscard]] const Json& value() const { return *value_; }
  [[nodiscard]] const std::string& place() const { return place_; }
  [[nodiscard]] bool IsObject() const { return value_->is_object(); }
  [[nodiscard]] bool IsList() const { return value_->is_array(); }
  [[nodiscard]] bool IsString() const { return value_->is_string(); }
  [[nodiscard]] bool IsNumber() const { return value_->is_number(); }
  [[nodiscard]] bool IsNull() const { return value_->is_null(); }
  [[nodiscard]] bool IsText(std::string_view text) const { return value_->is_string() && *value_->get_ptr<const std::string*>() == text; }

  /// True for an object with that field, null included.
  [[nodiscard]] bool Has(const std::string& field) const { return value_->is_object() && value_->contains(field); }
  /// Errors when this is no object or has no such field.
  [[nodiscard]] Result<JsonReader> At(const std::string& field) const;
  [[nodiscard]] Result<std::vector<JsonReader>> Items() const;
  /// The elements of a list, or what is no list as the only element.
  [[nodiscard]] std::vector<JsonReader> ItemsOrSelf() const;
  [[nodiscard]] Result<std::vector<std::pair<std::string, JsonReader>>> Fields() const;

  [[nodiscard]] Result<std::string> String() const;
  /// A whole number that is not negative.
  [[nodiscard]] Result<size_t> Count() const;
  [[nodiscard]] Result<double> Number() const;
  [[nodiscard]] Result<bool> Bool() const;
  [[nodiscard]] Result<std::vector<int64_t>> Integers() const;

  /// A field that may be absent.
  [[nodiscard]] Result<std::string> StringOr(const std::string& field, const std::string& fallback) const;
  [[nodiscard]] Result<size_t> CountOr(const std::string& field, size_t fallback) const;
  [[nodiscard]] Result<double> NumberOr(const std::string& field, double fallback) const;
  [[nodiscard]] Result<bool> BoolOr(const std::string& field, bool fallback) const;

  /// Errors when this is no object or has a field of another name: a misspelt field must not pass for an absent one.
  [[nodiscard]] Status OnlyFields(std::span<const std::string_view> names) const;
  [[nodiscard]] Status OnlyFields(std::initializer_list<std::string_view> names) const {
    return OnlyFields(std::span<const std::string_view>(names.begin(), names.size()));
  }
  /// "place: found .., expected what".
  [[nodiscard]] tl::unexpected<Error> Expected(const std::string& what) const;
  /// "place: message".
  [[nodiscard]] tl::unexpected<Error> Wrong(const std::string& message) const;

 private:
  const Json* value_;
  std::string place_;
};

/// Numbers, strings, booleans, null and lists of them.
Result<AttributeValue> AttributeValueFrom(const JsonReader& reader);
/// An object: name -> value.
Result<Attributes> AttributesFrom(const JsonReader& reader);
Json ToJson(const AttributeValue& value);
Json ToJson(const Attributes& attributes);

}  // namespace collage
