#include "collage/cache/cache_entry.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace collage {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostInt = std::numeric_limits<int>::max();

tl::unexpected<Error> FieldError(const std::string& field, const std::string& what) { return Fail("field '" + field + "': " + what); }

bool IsUtf8(const std::string& text) {
  try {
    (void)Json(text).dump();
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

std::string Hexadecimal(uint64_t hash) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

/// Reads the fields of one object; the first error is kept.
class FieldReader {
 public:
  explicit FieldReader(const Json& object) : object_(object) {}

  std::string Text(const char* field) {
    const Json* value = Find(field, "a string", &Json::is_string);
    return value ? value->get<std::string>() : std::string();
  }
  bool Flag(const char* field) {
    const Json* value = Find(field, "true or false", &Json::is_boolean);
    return value && value->get<bool>();
  }
  int64_t Integer(const char* field, int64_t least, int64_t most) {
    const std::string range = "an integer from " + std::to_string(least) + " to " + std::to_string(most);
    const Json* value = Find(field, range, &Json::is_number_integer);
    if (!value) return 0;
    const bool is_huge = value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(most);
    const bool is_inside = !is_huge && value->get<int64_t>() >= least && value->get<int64_t>() <= most;
    if (!is_inside) Refuse(field, range, *value);
    return is_inside ? value->get<int64_t>() : 0;
  }
  uint64_t Hash(const char* field) {
    const std::string text = Text(field);
    uint64_t hash = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
    if (status_ && (text.size() != 16 || error != std::errc() || end != text.data() + text.size()))
      Refuse(field, "16 hexadecimal digits", text);
    return hash;
  }
  std::vector<double> Numbers(const char* field) {
    const Json* value = Find(field, "a list of numbers", &Json::is_array);
    std::vector<double> numbers;
    if (!value) return numbers;
    for (const Json& number : *value) {
      if (!number.is_number()) {
        Refuse(field, "a list of numbers", number);
        break;
      }
      numbers.push_back(number.get<double>());
    }
    return numbers;
  }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  const Json* Find(const char* field, const std::string& expected, bool (Json::*is_right)() const noexcept) {
    if (!status_) return nullptr;
    const auto at = object_.find(field);
    if (at == object_.end()) {
      status_ = FieldError(field, "is missing");
      return nullptr;
    }
    if (((*at).*is_right)()) return &*at;
    Refuse(field, expected, *at);
    return nullptr;
  }
  void Refuse(const char* field, const std::string& expected, const Json& found) {
    constexpr size_t kMostShown = 60;
    std::string shown = found.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (shown.size() > kMostShown) shown = shown.substr(0, kMostShown) + "...";
    status_ = FieldError(field, "expected " + expected + ", found " + shown);
  }

  const Json& object_;
  Status status_;
};

/// As JSON has them: hashes in text, since its numbers are not all integers of 64 bits.
struct ToJsonValue {
  Json operator()(uint64_t hash) const { return Hexadecimal(hash); }
  template <class T>
  Json operator()(const T& value) const {
    return value;
  }
};

/// Sets a member from the field of this name.
struct FromField {
  FieldReader& reader;
  const char* field;
  void operator()(uint64_t& hash) const { hash = reader.Hash(field); }
  void operator()(std::string& text) const { text = reader.Text(field); }
  void operator()(int& number) const { number = static_cast<int>(reader.Integer(field, 1, kMostInt)); }
  void operator()(int64_t& number) const { number = reader.Integer(field, 0, std::numeric_limits<int64_t>::max()); }
  void operator()(std::vector<double>& numbers) const { numbers = reader.Numbers(field); }
  void operator()(bool& flag) const { flag = reader.Flag(field); }
};

/// Null where a part is no text.
struct AsText {
  const std::string* operator()(const std::string& text) const { return &text; }
  template <class T>
  const std::string* operator()(const T&) const {
    return nullptr;
  }
};

Status CheckPart(const CacheEntry& entry, const FactTable& table, const FactColumn& column) {
  const std::vector<double>& samples = entry.measurement.samples;
  const bool has_reason = !entry.measurement.invalid_reason.empty();
  // Bytes of a reason are a library's, and may be any.
  const bool may_be_empty = column.part == EntryPart::kVariant || column.part == EntryPart::kBackendVersion;
  const std::string* text = column.part == EntryPart::kInvalidReason ? nullptr : VisitPart(entry, column.part, AsText());
  if (text && !IsUtf8(*text)) return FieldError(column.name, "is no UTF-8 text");
  if (text && text->empty() && !may_be_empty) return FieldError(column.name, "is empty");
  const auto expect_at_least = [&](int64_t least, int64_t found, int64_t most) {
    return found >= least && found <= most
               ? Status{}
               : FieldError(column.name, "is " + std::to_string(found) + ", expected " + std::to_string(least) + " or more");
  };
  if (column.part == EntryPart::kThreads) return expect_at_least(1, entry.key.threads, kMostInt);
  if (column.part == EntryPart::kProtocol) return expect_at_least(1, entry.protocol, kMostInt);
  if (column.part == EntryPart::kStoredAt) return expect_at_least(0, entry.stored_at, std::numeric_limits<int64_t>::max());
  if (column.part == EntryPart::kInvalidReason && has_reason && !samples.empty()) return FieldError(column.name, "there are samples too");
  if (column.part != EntryPart::kSamples) return {};
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!std::isfinite(samples[i]) || samples[i] < 0 || (samples[i] == 0 && !table.may_be_zero))
      return FieldError(column.name,
                        "number " + std::to_string(i + 1) + " is " + std::to_string(samples[i]) + ", expected finite and positive");
  }
  if (!has_reason && samples.empty()) return FieldError(column.name, "is empty, and there is no reason why");
  return {};
}

}  // namespace

Status CheckEntry(const CacheEntry& entry) {
  const FactTable& table = TableOf(entry.key.fact);
  for (const FactColumn& column : table.columns) COLLAGE_TRY_STATUS(CheckPart(entry, table, column));
  return {};
}

std::string ToJsonLine(const CacheEntry& entry) {
  const FactTable& table = TableOf(entry.key.fact);
  Json json = {{"fact", table.name}};
  for (const FactColumn& column : table.columns) json[column.name] = VisitPart(entry, column.part, ToJsonValue());
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<CacheEntry> EntryFromJsonLine(const std::string& line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return Fail("is no JSON");
  if (!json.is_object()) return Fail("is no JSON object");
  FieldReader reader(json);
  const std::string name = json.contains("fact") ? reader.Text("fact") : TableOf(Fact::kKernel).name;
  if (!reader.status()) return Fail(reader.status().error());
  const FactTable* table = FindFactTable(name);
  if (!table) return FieldError("fact", "'" + name + "' is not known");
  CacheEntry entry;
  entry.key.fact = table->fact;
  std::set<std::string> known = {"fact"};
  for (const FactColumn& column : table->columns) {
    known.insert(column.name);
    // Exports of older versions have no anchors.
    if (column.part != EntryPart::kAnchors || json.contains(column.name)) VisitPart(entry, column.part, FromField{reader, column.name});
  }
  if (!reader.status()) return Fail(reader.status().error());
  for (const auto& [field, value] : json.items()) {
    if (!known.contains(field)) return FieldError(field, "is not known");
  }
  COLLAGE_TRY_STATUS(CheckEntry(entry));
  return entry;
}

}  // namespace collage
