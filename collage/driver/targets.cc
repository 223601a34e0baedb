#include <algorithm>

#include "collage/backend/registry.h"
#include "collage/driver/placement.h"
#include "collage/ir/virtual_device.h"
#include "collage/runtime/cpu_context.h"

namespace collage {
namespace {

PlacementTarget Taking(const BackendRecord& record, const std::string& target, bool is_fallback) {
  return {record.backend, record.presence.version, record.backend->Rules(), target, is_fallback};
}

/// A target as written, and the device of which it is one.
struct NamedTarget {
  Target target;
  std::optional<int> id;  ///< as far as written
};

/// The CPU that compiles is the host of what it compiles: of all that -host= may say, here only that can be met. An open id is its id.
Status CheckHost(const std::string& text, const std::string& stated, const Device& host) {
  const std::string flag = "--target \"" + text + "\": -host=" + stated;
  const std::string expected = "expected " + ToString(host) + ", the CPU that runs what is compiled";
  const Result<VirtualDevice> parsed = VirtualDevice::Parse(stated);
  if (!parsed) return Fail(flag + " is no device, " + expected);
  const VirtualDevice only{host.kind, host.id, std::nullopt, ""};
  const JoinedDevice joined = Join(*parsed, only);
  if (!parsed->device_type || joined.conflict || !(joined.device == only)) return Fail(flag + " is not the host, " + expected);
  return {};
}

/// "opencl:1 -compiler=opencl". Where the host is what -host= says, all has that host, and the target says no more of it.
Result<NamedTarget> ParseNamedTarget(const std::string& text, const Device& host) {
  const size_t end = std::min(text.find_first_of(" \t"), text.size());
  const size_t colon = text.find(':');
  NamedTarget named;
  if (colon < end) {
    const Result<Device> device = ParseDevice(text.substr(0, end), Device());
    if (!device) return Fail("target '" + text + "': " + device.error().message);
    named.id = device->id;
  }
  named.target = COLLAGE_TRY(Target::Parse(text.substr(0, std::min(colon, end)) + text.substr(end)));
  const std::string stated = named.target.Attribute("host");
  if (!stated.empty()) COLLAGE_TRY_STATUS(CheckHost(text, stated, host));
  std::erase_if(named.target.attributes, [](const auto& attribute) { return attribute.first == "host"; });
  return named;
}

// The backend that knows every operator by its reference kernel runs what nobody else does, and never competes.
constexpr const char* kFallback = "reference";

/// That which a target without a compiler means.
bool IsNative(const BackendRecord& record) {
  const BackendRules rules = record.backend->Rules();
  return rules.style == BackendRules::Style::kNative && !rules.only_where_named;
}

/// A CPU beside the host, as a target names it.
Result<const CpuStatement*> Stated(const std::string& text, const BackendRecord& record, int id, const std::vector<CpuStatement>& cpus) {
  const auto at = std::find_if(cpus.begin(), cpus.end(), [&](const CpuStatement& cpu) { return cpu.id == id; });
  const std::string name = "cpu:" + std::to_string(id);
  if (at == cpus.end())
    return Fail("--target \"" + text + "\": " + name + " has no processors; state them, as in --processors " + name + "=1");
  if (!RunsOnTeam(*record.backend))
    return Fail("--target \"" + text + "\": backend '" + record.name + "' has threads of its own and runs on cpu:0 alone");
  return &*at;
}

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
    return record.backend && IsNative(record);
  });
  const std::string quoted = "--target \"" + target.ToString() + "\": ";
  if (at == records.end()) return Fail(quoted + "unknown compiler '" + target.CompilerName() + "'; available: " + PresentNames(records));
  if (!at->presence.present) return Fail(quoted + "backend '" + at->name + "' is not available: " + at->presence.reason);
  return &*at;
}

/// A backend on a device that it has found.
Result<PlacementTarget> TargetOn(const BackendRecord& record, const Device& device) {
  const Presence presence = record.backend->Probe(device);
  if (!presence.present) return Fail("backend '" + record.name + "' is not available on " + ToString(device) + ": " + presence.reason);
  const Target target{device.kind, {{"compiler", record.name}}};
  return PlacementTarget{record.backend,
                         presence.version,
                         record.backend->Rules(),
                         target.ToString(),
                         false,
                         device,
                         COLLAGE_TRY(record.backend->Open(device))};
}

std::vector<Device> FoundBy(const BackendRecord& record, const Device& host) {
  std::vector<Device> devices;
  if (!record.backend) return devices;
  for (const FoundDevice& found : record.backend->Devices()) devices.push_back({found.device.kind, found.device.id, host.threads});
  return devices;
}

/// Of a device beside the host; without a compiler the first backend that runs there.
Result<PlacementTarget> ResolveElsewhere(const std::string& text, const NamedTarget& named, const std::vector<BackendRecord>& records,
                                         const Device& host) {
  const std::string compiler = named.target.Attribute("compiler");
  std::string reasons;
  for (const BackendRecord& record : records) {
    if (!compiler.empty() && record.name != compiler) continue;
    for (const Device& device : FoundBy(record, host)) {
      if (device.kind == named.target.kind && device.id == named.id.value_or(device.id)) return TargetOn(record, device);
    }
    // Of other devices than the host those backends tell that do not run there.
    if (record.presence.present) continue;
    const Presence presence = record.backend ? record.backend->Probe({named.target.kind, named.id.value_or(0), 1}) : record.presence;
    reasons += "; " + record.name + ": " + presence.reason;
  }
  return Fail("--target \"" + text + "\": no backend has found such a device" + reasons + "; collage backends lists them");
}

}  // namespace

std::string DeviceText(const PlacementTarget& target) {
  if (const CpuContext* cpu = AsCpu(target.context.get())) return cpu->statement().ToString();
  return target.device ? ToString(*target.device) : "";
}

Result<std::vector<PlacementTarget>> ResolveTargets(const std::vector<std::string>& targets, const Device& device, bool all_devices,
                                                    const std::vector<CpuStatement>& cpus) {
  const std::vector<BackendRecord> records = AvailableBackends(device);
  std::vector<PlacementTarget> resolved;
  const auto is_there = [&](const Backend* backend, const std::optional<Device>& on) {
    return std::any_of(resolved.begin(), resolved.end(),
                       [&](const PlacementTarget& other) { return other.backend == backend && other.device == on; });
  };
  const auto add = [&](const BackendRecord& record, const std::string& target) {
    if (!is_there(record.backend, std::nullopt)) resolved.push_back(Taking(record, target, record.name == kFallback));
  };
  const auto add_on = [&](const BackendRecord& record, const std::string& target, const CpuStatement& cpu) -> Status {
    PlacementTarget on = Taking(record, target, false);
    on.device = cpu.ToDevice();
    on.context = COLLAGE_TRY(CpuContext::Open(cpu));
    if (!is_there(on.backend, on.device)) resolved.push_back(std::move(on));
    return {};
  };
  const auto add_on_all = [&](const BackendRecord& record, const std::string& target) -> Status {
    for (const CpuStatement& cpu : cpus) {
      if (RunsOnTeam(*record.backend)) COLLAGE_TRY_STATUS(add_on(record, target, cpu));
    }
    return {};
  };
  if (targets.empty()) {
    for (const BackendRecord& record : records) {
      if (!record.presence.present || record.name == kFallback || record.backend->Rules().only_where_named) continue;
      const std::string target = IsNative(record) ? "cpu" : "cpu -compiler=" + record.name;
      add(record, target);
      COLLAGE_TRY_STATUS(add_on_all(record, target));
    }
    for (const BackendRecord& record : records) {
      for (const Device& found : all_devices ? FoundBy(record, device) : std::vector<Device>()) {
        if (record.backend->Probe(found).present) resolved.push_back(COLLAGE_TRY(TargetOn(record, found)));
      }
    }
  }
  for (const std::string& text : targets) {
    const NamedTarget named = COLLAGE_TRY(ParseNamedTarget(text, device));
    if (named.target.kind == DeviceKind::kCpu) {
      const BackendRecord& record = *COLLAGE_TRY(FindRecord(records, named.target));
      if (named.id.value_or(0) == 0) add(record, named.target.ToString());
      if (!named.id) COLLAGE_TRY_STATUS(add_on_all(record, named.target.ToString()));
      if (named.id.value_or(0) != 0)
        COLLAGE_TRY_STATUS(add_on(record, named.target.ToString(), *COLLAGE_TRY(Stated(text, record, *named.id, cpus))));
      continue;
    }
    PlacementTarget target = COLLAGE_TRY(ResolveElsewhere(text, named, records, device));
    if (!is_there(target.backend, target.device)) resolved.push_back(std::move(target));
  }
  for (const BackendRecord& record : records) {
    if (record.presence.present && record.name == kFallback) add(record, "cpu -compiler=" + record.name);
  }
  return resolved;
}

std::vector<std::string> TimedHere(const std::vector<PlacementTarget>& targets) {
  std::vector<std::string> names;
  for (const PlacementTarget& target : targets) {
    if (IsAdded(target.backend->Name())) names.emplace_back(target.backend->Name());
  }
  return names;
}

}  // namespace collage
