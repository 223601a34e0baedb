#include <algorithm>

#include "collage/backend/registry.h"
#include "collage/driver/placement.h"
#include "collage/ir/target.h"

namespace collage {
namespace {

PlacementTarget Taking(const BackendRecord& record, const std::string& target, bool is_fallback) {
  return {record.backend, record.presence.version, record.backend->Rules(), target, is_fallback};
}

// The backend that knows every operator by its reference kernel runs what nobody else does, and never competes.
constexpr const char* kFallback = "reference";

std::string PresentNames(const std::vector<BackendRecord>& records) {
  std::string names;
  for (const BackendRecord& record : records) {
    if (record.presence.present && record.name != kFallback) names += (names.empty() ? "" : ", ") + record.name;
  }
  return names;
}

Result<const BackendRecord*> FindRecord(const std::vector<BackendRecord>& records, const Target& target) {
  const std::string compiler = target.Attribute("compiler");
  const auto at = std::find_if(records.begin(), records.end(), [&](const BackendRecord& record) {
    if (!compiler.empty()) return record.name == compiler;
    return record.backend && record.backend->Rules().style == BackendRules::Style::kNative;
  });
  const std::string quoted = "--target \"" + target.ToString() + "\": ";
  if (at == records.end()) return Fail(quoted + "unknown compiler '" + target.CompilerName() + "'; available: " + PresentNames(records));
  if (!at->presence.present) return Fail(quoted + "backend '" + at->name + "' is not available: " + at->presence.reason);
  return &*at;
}

}  // namespace

Result<std::vector<PlacementTarget>> ResolveTargets(const std::vector<std::string>& targets, const Device& device) {
  const std::vector<BackendRecord> records = AvailableBackends(device);
  std::vector<PlacementTarget> resolved;
  const auto add = [&](const BackendRecord& record, const std::string& target) {
    const bool is_there =
        std::any_of(resolved.begin(), resolved.end(), [&](const PlacementTarget& other) { return other.backend == record.backend; });
    if (!is_there) resolved.push_back(Taking(record, target, record.name == kFallback));
  };
  if (targets.empty()) {
    for (const BackendRecord& record : records) {
      const bool is_native = record.presence.present && record.backend->Rules().style == BackendRules::Style::kNative;
      if (record.presence.present && record.name != kFallback) add(record, is_native ? "cpu" : "cpu -compiler=" + record.name);
    }
  }
  for (const std::string& text : targets) {
    const Target target = COLLAGE_TRY(Target::Parse(text));
    if (target.kind != DeviceKind::kCpu) return Fail("--target \"" + text + "\": this build runs on cpu only");
    add(*COLLAGE_TRY(FindRecord(records, target)), text);
  }
  for (const BackendRecord& record : records) {
    if (record.presence.present && record.name == kFallback) add(record, "cpu -compiler=" + record.name);
  }
  return resolved;
}

}  // namespace collage
