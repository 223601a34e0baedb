#include "collage/cache/cache_entry.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

namespace collage {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kFieldCount = 12;
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

Status CheckKey(const CacheEntry& entry) {
  const MeasurementKey& key = entry.key;
  const std::pair<const char*, const std::string*> texts[] = {
      {"backend", &key.backend}, {"backend_version", &key.backend_version}, {"variant", &key.variant}, {"device", &key.device}};
  for (const auto& [field, text] : texts) {
    if (!IsUtf8(*text)) return FieldError(field, "is no UTF-8 text");
  }
  if (key.backend.empty()) return FieldError("backend", "is empty");
  if (key.device.empty()) return FieldError("device", "is empty");
  if (key.threads < 1) return FieldError("threads", "is " + std::to_string(key.threads) + ", expected 1 or more");
  if (entry.protocol < 1 || entry.protocol > kMostInt)
    return FieldError("protocol", "is " + std::to_string(entry.protocol) + ", expected 1 or more");
  return {};
}

}  // namespace

bool IsKernel(const MeasurementKey& key) {
  constexpr const char* kOthers[] = {kRaceBackend, kDriftBackend, kDifferenceBackend, kDecisionBackend, kTransitionBackend, kTuningBackend};
  return std::none_of(std::begin(kOthers), std::end(kOthers), [&](const char* other) { return key.backend == other; });
}

Status CheckEntry(const CacheEntry& entry) {
  COLLAGE_TRY_STATUS(CheckKey(entry));
  const std::vector<double>& samples = entry.measurement.samples;
  const bool may_be_zero = entry.key.backend == kDifferenceBackend || entry.key.backend == kDecisionBackend;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!std::isfinite(samples[i]) || samples[i] < 0 || (samples[i] == 0 && !may_be_zero))
      return FieldError("samples",
                        "number " + std::to_string(i + 1) + " is " + std::to_string(samples[i]) + ", expected finite and positive");
  }
  const bool has_reason = !entry.measurement.invalid_reason.empty();
  if (has_reason && !samples.empty()) return FieldError("invalid_reason", "there are samples too");
  if (!has_reason && samples.empty()) return FieldError("samples", "is empty, and there is no invalid_reason");
  if (entry.stored_at < 0) return FieldError("stored_at", "is " + std::to_string(entry.stored_at) + ", expected 0 or more");
  return {};
}

std::string ToJsonLine(const CacheEntry& entry) {
  const Json json = {{"function_hash", Hexadecimal(entry.key.function_hash)},
                     {"backend", entry.key.backend},
                     {"backend_version", entry.key.backend_version},
                     {"variant", entry.key.variant},
                     {"device", entry.key.device},
                     {"threads", entry.key.threads},
                     {"protocol", entry.protocol},
                     {"samples", entry.measurement.samples},
                     {"invalid_reason", entry.measurement.invalid_reason},
                     {"verified", entry.verified},
                     {"stored_at", entry.stored_at},
                     {"anchors", entry.measurement.anchors}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<CacheEntry> EntryFromJsonLine(const std::string& line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return Fail("is no JSON");
  if (!json.is_object()) return Fail("is no JSON object");
  FieldReader reader(json);
  CacheEntry entry;
  entry.key.function_hash = reader.Hash("function_hash");
  entry.key.backend = reader.Text("backend");
  entry.key.backend_version = reader.Text("backend_version");
  entry.key.variant = reader.Text("variant");
  entry.key.device = reader.Text("device");
  entry.key.threads = static_cast<int>(reader.Integer("threads", 1, kMostInt));
  entry.protocol = reader.Integer("protocol", 1, kMostInt);
  entry.measurement.samples = reader.Numbers("samples");
  entry.measurement.invalid_reason = reader.Text("invalid_reason");
  entry.verified = reader.Flag("verified");
  entry.stored_at = reader.Integer("stored_at", 0, std::numeric_limits<int64_t>::max());
  // Exports of older versions have none.
  if (json.contains("anchors")) entry.measurement.anchors = reader.Numbers("anchors");
  if (!reader.status()) return Fail(reader.status().error());
  if (json.size() > kFieldCount) {
    const Json known = Json::parse(ToJsonLine(entry));
    for (const auto& [field, value] : json.items()) {
      if (!known.contains(field)) return FieldError(field, "is not known");
    }
  }
  COLLAGE_TRY_STATUS(CheckEntry(entry));
  return entry;
}

}  // namespace collage
