#include "collage/query/json_reader.h"

#include <algorithm>

namespace collage {
namespace {

constexpr size_t kLongestExcerpt = 60;

}  // namespace

Result<JsonReader> JsonReader::At(const std::string& field) const {
  if (!IsObject()) return Expected("an object with the field \"" + field + "\"");
  const auto at = value_->find(field);
  if (at == value_->end()) return Wrong("the field \"" + field + "\" is missing");
  return JsonReader(*at, place_ + "." + field);
}

Result<std::vector<JsonReader>> JsonReader::Items() const {
  if (!IsList()) return Expected("a list");
  return ItemsOrSelf();
}

std::vector<JsonReader> JsonReader::ItemsOrSelf() const {
  if (!IsList()) return {*this};
  std::vector<JsonReader> items;
  for (size_t i = 0; i < value_->size(); ++i) items.emplace_back((*value_)[i], place_ + "[" + std::to_string(i) + "]");
  return items;
}

Result<std::vector<std::pair<std::string, JsonReader>>> JsonReader::Fields() const {
  if (!IsObject()) return Expected("an object");
  std::vector<std::pair<std::string, JsonReader>> fields;
  for (const auto& [name, value] : value_->items()) fields.emplace_back(name, JsonReader(value, place_ + "." + name));
  return fields;
}

Result<std::string> JsonReader::String() const {
  if (!IsString()) return Expected("a string");
  return value_->get<std::string>();
}

Result<size_t> JsonReader::Count() const {
  if (!value_->is_number_integer() || (!value_->is_number_unsigned() && value_->get<int64_t>() < 0)) {
    return Expected("a whole number that is not negative");
  }
  return value_->get<size_t>();
}

Result<double> JsonReader::Number() const {
  if (!IsNumber()) return Expected("a number");
  return value_->get<double>();
}

Result<bool> JsonReader::Bool() const {
  if (!value_->is_boolean()) return Expected("true or false");
  return value_->get<bool>();
}

Result<std::vector<int64_t>> JsonReader::Integers() const {
  std::vector<int64_t> integers;
  for (const JsonReader& item : COLLAGE_TRY(Items())) {
    if (!item.value().is_number_integer()) return item.Expected("a whole number");
    integers.push_back(item.value().get<int64_t>());
  }
  return integers;
}

Result<std::string> JsonReader::StringOr(const std::string& field, const std::string& fallback) const {
  return Has(field) ? COLLAGE_TRY(At(field)).String() : fallback;
}

Result<size_t> JsonReader::CountOr(const std::string& field, size_t fallback) const {
  return Has(field) ? COLLAGE_TRY(At(field)).Count() : fallback;
}

Result<double> JsonReader::NumberOr(const std::string& field, double fallback) const {
  return Has(field) ? COLLAGE_TRY(At(field)).Number() : fallback;
}

Result<bool> JsonReader::BoolOr(const std::string& field, bool fallback) const {
  return Has(field) ? COLLAGE_TRY(At(field)).Bool() : fallback;
}

Status JsonReader::OnlyFields(std::span<const std::string_view> names) const {
  if (!IsObject()) return Expected("an object");
  for (const auto& [field, value] : value_->items()) {
    if (std::find(names.begin(), names.end(), field) != names.end()) continue;
    std::string all;
    for (const std::string_view name : names) all += (all.empty() ? "" : ", ") + std::string(name);
    return Wrong("unknown field \"" + field + "\", expected " + (all.empty() ? "none" : "one of " + all));
  }
  return {};
}

tl::unexpected<Error> JsonReader::Expected(const std::string& what) const {
  std::string found = value_->dump(-1, ' ', false, Json::error_handler_t::replace);
  if (found.size() > kLongestExcerpt) found = found.substr(0, kLongestExcerpt) + "..";
  return Wrong("found " + found + ", expected " + what);
}

tl::unexpected<Error> JsonReader::Wrong(const std::string& message) const { return Fail(place_ + ": " + message); }

Result<AttributeValue> AttributeValueFrom(const JsonReader& reader) {
  const Json& value = reader.value();
  if (value.is_null()) return AttributeValue();
  if (value.is_boolean()) return AttributeValue(value.get<bool>());
  if (value.is_number_integer()) return AttributeValue(value.get<int64_t>());
  if (value.is_number_float()) return AttributeValue(value.get<double>());
  if (value.is_string()) return AttributeValue(value.get<std::string>());
  if (!value.is_array()) return reader.Expected("a number, a string, true, false, null or a list of them");
  AttributeValue::List list;
  for (const JsonReader& item : COLLAGE_TRY(reader.Items())) list.push_back(COLLAGE_TRY(AttributeValueFrom(item)));
  return AttributeValue(std::move(list));
}

Result<Attributes> AttributesFrom(const JsonReader& reader) {
  Attributes attributes;
  for (const auto& [name, value] : COLLAGE_TRY(reader.Fields())) attributes.Set(name, COLLAGE_TRY(AttributeValueFrom(value)));
  return attributes;
}

Json ToJson(const AttributeValue& value) {
  if (value.AsBool()) return *value.AsBool();
  if (value.AsInt()) return *value.AsInt();
  if (value.AsDouble()) return *value.AsDouble();
  if (value.AsString()) return *value.AsString();
  if (!value.AsList()) return nullptr;
  Json list = Json::array();
  for (const AttributeValue& item : *value.AsList()) list.push_back(ToJson(item));
  return list;
}

Json ToJson(const Attributes& attributes) {
  Json object = Json::object();
  for (const auto& [name, value] : attributes.entries()) object[name] = ToJson(value);
  return object;
}

}  // namespace collage
