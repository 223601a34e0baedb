#include "collage/ir/attributes.h"

#include <algorithm>
#include <charconv>

#include "collage/support/hash.h"

namespace collage {
namespace {

std::string ShortestFloat(double value) {
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end};
}

tl::unexpected<Error> WrongKind(std::string_view name, const AttributeValue& value, const char* wanted) {
  return Fail("attribute '" + std::string(name) + "' is " + ToString(value) + ", expected " + wanted);
}

uint64_t HashOf(const AttributeValue& value) { return HashBytes(ToString(value)); }

}  // namespace

std::string ToString(const AttributeValue& value) {
  if (const bool* b = value.AsBool()) return *b ? "True" : "False";
  if (const int64_t* i = value.AsInt()) return std::to_string(*i);
  if (const double* d = value.AsDouble()) return ShortestFloat(*d) + "f";
  if (const std::string* s = value.AsString()) {
    std::string text = "\"";
    for (char c : *s) {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
    return text + "\"";
  }
  if (const AttributeValue::List* list = value.AsList()) {
    std::string text = "[";
    for (size_t i = 0; i < list->size(); ++i) text += (i ? ", " : "") + ToString((*list)[i]);
    return text + "]";
  }
  return "None";
}

const AttributeValue* Attributes::Find(std::string_view name) const {
  const auto at = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.first == name; });
  return at == entries_.end() ? nullptr : &at->second;
}

void Attributes::Set(std::string name, AttributeValue value) {
  const auto at = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.first == name; });
  if (at != entries_.end()) {
    at->second = std::move(value);
  } else {
    entries_.emplace_back(std::move(name), std::move(value));
  }
}

void Attributes::Erase(std::string_view name) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.first == name; });
}

Result<int64_t> Attributes::Int(std::string_view name, int64_t fallback) const {
  const AttributeValue* value = Find(name);
  if (!value || value->IsNone()) return fallback;
  if (const int64_t* i = value->AsInt()) return *i;
  return WrongKind(name, *value, "an integer");
}

Result<double> Attributes::Double(std::string_view name, double fallback) const {
  const AttributeValue* value = Find(name);
  if (!value || value->IsNone()) return fallback;
  if (const double* d = value->AsDouble()) return *d;
  if (const int64_t* i = value->AsInt()) return static_cast<double>(*i);
  return WrongKind(name, *value, "a number");
}

Result<bool> Attributes::Bool(std::string_view name, bool fallback) const {
  const AttributeValue* value = Find(name);
  if (!value || value->IsNone()) return fallback;
  if (const bool* b = value->AsBool()) return *b;
  if (const int64_t* i = value->AsInt(); i && (*i == 0 || *i == 1)) return *i == 1;
  return WrongKind(name, *value, "True or False");
}

Result<std::string> Attributes::String(std::string_view name, std::string fallback) const {
  const AttributeValue* value = Find(name);
  if (!value || value->IsNone()) return fallback;
  if (const std::string* s = value->AsString()) return *s;
  return WrongKind(name, *value, "a string");
}

Result<std::vector<int64_t>> Attributes::Ints(std::string_view name, std::vector<int64_t> fallback) const {
  const AttributeValue* value = Find(name);
  if (!value || value->IsNone()) return fallback;
  if (const int64_t* i = value->AsInt()) return std::vector<int64_t>{*i};
  const AttributeValue::List* list = value->AsList();
  if (!list) return WrongKind(name, *value, "a list of integers");
  std::vector<int64_t> ints;
  for (const AttributeValue& item : *list) {
    const int64_t* i = item.AsInt();
    if (!i) return WrongKind(name, *value, "a list of integers");
    ints.push_back(*i);
  }
  return ints;
}

bool operator==(const Attributes& a, const Attributes& b) {
  return a.entries_.size() == b.entries_.size() && std::all_of(a.entries_.begin(), a.entries_.end(), [&](const auto& entry) {
           const AttributeValue* other = b.Find(entry.first);
           return other && *other == entry.second;
         });
}

uint64_t Attributes::Hash() const {
  uint64_t hash = 0;
  for (const Entry& entry : entries_) hash += HashCombine(HashBytes(entry.first), HashOf(entry.second));
  return hash;
}

}  // namespace collage
