#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "collage/support/result.h"

namespace collage {

/// None, bool, integer, float, string, or a list of attribute values ("[[0, 0], [2, 2]]").
class AttributeValue {
 public:
  using List = std::vector<AttributeValue>;

  AttributeValue() = default;                                                                         // None
  AttributeValue(bool value) : value_(value) {}                                                       // NOLINT(google-explicit-constructor)
  AttributeValue(int value) : value_(int64_t{value}) {}                                               // NOLINT(google-explicit-constructor)
  AttributeValue(int64_t value) : value_(value) {}                                                    // NOLINT(google-explicit-constructor)
  AttributeValue(double value) : value_(value) {}                                                     // NOLINT(google-explicit-constructor)
  AttributeValue(const char* value) : value_(std::string(value)) {}                                   // NOLINT(google-explicit-constructor)
  AttributeValue(std::string value) : value_(std::move(value)) {}                                     // NOLINT(google-explicit-constructor)
  AttributeValue(List value) : value_(std::move(value)) {}                                            // NOLINT(google-explicit-constructor)
  AttributeValue(const std::vector<int64_t>& values) : value_(List(values.begin(), values.end())) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool IsNone() const { return std::holds_alternative<std::monostate>(value_); }
  [[nodiscard]] const bool* AsBool() const { return std::get_if<bool>(&value_); }
  [[nodiscard]] const int64_t* AsInt() const { return std::get_if<int64_t>(&value_); }
  [[nodiscard]] const double* AsDouble() const { return std::get_if<double>(&value_); }
  [[nodiscard]] const std::string* AsString() const { return std::get_if<std::string>(&value_); }
  [[nodiscard]] const List* AsList() const { return std::get_if<List>(&value_); }

  friend bool operator==(const AttributeValue& a, const AttributeValue& b) { return a.value_ == b.value_; }

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, List> value_;
};

/// Relay's form: None, True, False, 3, 0.5f, "text", [1, 2].
std::string ToString(const AttributeValue& value);

/// Attributes of a call or a function, in the order in which they were given (so that text prints back as it was read).
/// Equality and hash do not depend on the order. The typed getters give `fallback` where the attribute is absent or None;
/// asking for a value of another kind is an error of the type rule that reads it, so getters that can fail answer Result.
class Attributes {
 public:
  using Entry = std::pair<std::string, AttributeValue>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries) : entries_(entries) {}

  [[nodiscard]] bool Empty() const { return entries_.empty(); }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  /// Null when absent.
  [[nodiscard]] const AttributeValue* Find(std::string_view name) const;
  [[nodiscard]] bool Has(std::string_view name) const { return Find(name) != nullptr; }
  void Set(std::string name, AttributeValue value);
  void Erase(std::string_view name);

  [[nodiscard]] Result<int64_t> Int(std::string_view name, int64_t fallback) const;
  [[nodiscard]] Result<double> Double(std::string_view name, double fallback) const;
  [[nodiscard]] Result<bool> Bool(std::string_view name, bool fallback) const;
  [[nodiscard]] Result<std::string> String(std::string_view name, std::string fallback) const;
  /// A list of integers; a bare integer is a list of one.
  [[nodiscard]] Result<std::vector<int64_t>> Ints(std::string_view name, std::vector<int64_t> fallback) const;

  friend bool operator==(const Attributes& a, const Attributes& b);
  [[nodiscard]] uint64_t Hash() const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace collage
