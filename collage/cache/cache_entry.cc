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

bool IsText(EntryPart part) {
  return part == EntryPart::kBackend || part == EntryPart::kBackendVersion || part == EntryPart::kVariant || part == EntryPart::kDevice;
}

const std::string& TextOf(const MeasurementKey& key, EntryPart part) {
  return part == EntryPart::kBackend          ? key.backend
         : part == EntryPart::kBackendVersion ? key.backend_version
         : part == EntryPart::kVariant        ? key.variant
                                              : key.device;
}

Status CheckPart(const CacheEntry& entry, const FactTable& table, const FactColumn& column) {
  const std::vector<double>& samples = entry.measurement.samples;
  const bool has_reason = !entry.measurement.invalid_reason.empty();
  const bool may_be_empty = column.part == EntryPart::kVariant || column.part == EntryPart::kBackendVersion;
  if (IsText(column.part)) {
    const std::string& text = TextOf(entry.key, column.part);
    if (!IsUtf8(text)) return FieldError(column.name, "is no UTF-8 text");
    if (text.empty() && !may_be_empty) return FieldError(column.name, "is empty");
  }
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

Json ToJson(const CacheEntry& entry, EntryPart part) {
  switch (part) {
    case EntryPart::kHash:
      return Hexadecimal(entry.key.function_hash);
    case EntryPart::kContext:
      return Hexadecimal(entry.key.context);
    case EntryPart::kThreads:
      return entry.key.threads;
    case EntryPart::kProtocol:
      return entry.protocol;
    case EntryPart::kSamples:
      return entry.measurement.samples;
    case EntryPart::kInvalidReason:
      return entry.measurement.invalid_reason;
    case EntryPart::kAnchors:
      return entry.measurement.anchors;
    case EntryPart::kVerified:
      return entry.verified;
    case EntryPart::kStoredAt:
      return entry.stored_at;
    default:
      return TextOf(entry.key, part);
  }
}

void ReadPart(FieldReader& reader, const FactColumn& column, CacheEntry& entry) {
  switch (column.part) {
    case EntryPart::kHash:
      entry.key.function_hash = reader.Hash(column.name);
      break;
    case EntryPart::kContext:
      entry.key.context = reader.Hash(column.name);
      break;
    case EntryPart::kBackend:
      entry.key.backend = reader.Text(column.name);
      break;
    case EntryPart::kBackendVersion:
      entry.key.backend_version = reader.Text(column.name);
      break;
    case EntryPart::kVariant:
      entry.key.variant = reader.Text(column.name);
      break;
    case EntryPart::kDevice:
      entry.key.device = reader.Text(column.name);
      break;
    case EntryPart::kThreads:
      entry.key.threads = static_cast<int>(reader.Integer(column.name, 1, kMostInt));
      break;
    case EntryPart::kProtocol:
      entry.protocol = reader.Integer(column.name, 1, kMostInt);
      break;
    case EntryPart::kSamples:
      entry.measurement.samples = reader.Numbers(column.name);
      break;
    case EntryPart::kInvalidReason:
      entry.measurement.invalid_reason = reader.Text(column.name);
      break;
    case EntryPart::kAnchors:
      entry.measurement.anchors = reader.Numbers(column.name);
      break;
    case EntryPart::kVerified:
      entry.verified = reader.Flag(column.name);
      break;
    case EntryPart::kStoredAt:
      entry.stored_at = reader.Integer(column.name, 0, std::numeric_limits<int64_t>::max());
      break;
  }
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
  for (const FactColumn& column : table.columns) json[column.name] = ToJson(entry, column.part);
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
    if (column.part != EntryPart::kAnchors || json.contains(column.name)) ReadPart(reader, column, entry);
  }
  if (!reader.status()) return Fail(reader.status().error());
  for (const auto& [field, value] : json.items()) {
    if (!known.contains(field)) return FieldError(field, "is not known");
  }
  COLLAGE_TRY_STATUS(CheckEntry(entry));
  return entry;
}

}  // namespace collage
