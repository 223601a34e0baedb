#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "collage/backend/registry.h"
#include "collage/driver/transitions.h"
#include "collage/runtime/device.h"
#include "tools/command.h"
#include "tools/inputs.h"
#include "tools/interrupt.h"
#include "tools/output.h"
#include "tools/program.h"
#include "tools/terminal_progress.h"

namespace collage::tools {
namespace {

struct Options {
  int threads = AvailableThreads();
  std::string json;
  bool costs = false;
  std::string cache;
};

/// Costs of transitions where weights stay in the caches ("warm"), and where other data has driven them out ("evicted").
struct NamedCosts {
  const char* name;
  const char* meaning;
  TransitionCosts costs;
};

nlohmann::ordered_json CostsJson(const NamedCosts& named) {
  const TransitionCosts& costs = named.costs;
  nlohmann::ordered_json pairs = nlohmann::ordered_json::array();
  for (size_t from = 0; from < costs.backends.size(); ++from) {
    for (size_t to = 0; to < costs.backends.size(); ++to) {
      if (!costs.reasons[from].empty() || !costs.reasons[to].empty()) continue;
      const Transition& pair = costs.pairs[from][to];
      pairs.push_back({{"from", costs.backends[from]},
                       {"to", costs.backends[to]},
                       {"extra_us", pair.extra_us},
                       {"noise_us", pair.noise_us},
                       {"cost_us", pair.cost.ToMicroseconds()}});
    }
  }
  nlohmann::ordered_json alone = nlohmann::ordered_json::object();
  nlohmann::ordered_json reasons = nlohmann::ordered_json::object();
  for (size_t b = 0; b < costs.backends.size(); ++b) {
    if (costs.reasons[b].empty()) alone[costs.backends[b]] = costs.alone_us[b];
    if (!costs.reasons[b].empty()) reasons[costs.backends[b]] = costs.reasons[b];
  }
  return {{"alone_us", std::move(alone)}, {"pairs", std::move(pairs)}, {"not_measured", std::move(reasons)}};
}

void PrintCosts(const NamedCosts& named) {
  const TransitionCosts& costs = named.costs;
  std::printf("\ntransitions, us, %s:\n%-12s", named.meaning, "after \\ runs");
  for (const std::string& name : costs.backends) std::printf("%20s", name.c_str());
  std::printf("\n%-12s", "alone");
  for (size_t b = 0; b < costs.backends.size(); ++b)
    std::printf("%20s", costs.reasons[b].empty() ? fmt::format("{:.1f}", costs.alone_us[b]).c_str() : "-");
  for (size_t from = 0; from < costs.backends.size(); ++from) {
    if (!costs.reasons[from].empty()) continue;
    std::printf("\n%-12s", costs.backends[from].c_str());
    for (size_t to = 0; to < costs.backends.size(); ++to) {
      const Transition& pair = costs.pairs[from][to];
      std::printf("%20s", costs.reasons[to].empty()
                              ? fmt::format("{:.1f} ({:+.1f} +- {:.1f})", pair.cost.ToMicroseconds(), pair.extra_us, pair.noise_us).c_str()
                              : "-");
    }
  }
  std::printf("\n");
  for (size_t b = 0; b < costs.backends.size(); ++b) {
    if (!costs.reasons[b].empty()) std::printf("%s: not measured: %s\n", costs.backends[b].c_str(), costs.reasons[b].c_str());
  }
}

Result<std::vector<NamedCosts>> MeasureCosts(const Options& options) {
  TerminalProgress terminal;
  const Progress progress{[&](const ProgressEvent& event) { terminal.Show(event); }, &InterruptRequested()};
  std::vector<NamedCosts> costs = {{"warm", "added to prices of kernels whose weights stay in the caches", {}},
                                   {"evicted", "added to prices of kernels whose weights do not", {}}};
  for (NamedCosts& named : costs)
    named.costs = COLLAGE_TRY(BackendTransitions(options.cache, options.threads, named.name == std::string("evicted"), progress));
  terminal.Clear();
  return costs;
}

/// Beside the host's CPU.
std::vector<FoundDevice> DevicesOf(const BackendRecord& record) {
  return record.backend ? record.backend->Devices() : std::vector<FoundDevice>();
}

nlohmann::ordered_json DevicesJson(const BackendRecord& record) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const FoundDevice& found : DevicesOf(record)) {
    const Presence presence = record.backend->Probe(found.device);
    list.push_back({{"device", ToString(found.device)}, {"name", found.name}, {"present", presence.present}});
    list.back()[presence.present ? "version" : "reason"] = presence.present ? presence.version : presence.reason;
  }
  return list;
}

int Run(const Options& options) {
  Result<std::vector<NamedCosts>> costs = std::vector<NamedCosts>();
  if (options.costs) costs = MeasureCosts(options);
  if (!costs) return ReportError(costs.error());
  const std::vector<BackendRecord> records = AvailableBackends({DeviceKind::kCpu, 0, options.threads});
  if (!options.json.empty()) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const BackendRecord& record : records) {
      nlohmann::ordered_json entry = {{"name", record.name}, {"present", record.presence.present}};
      if (record.presence.present) {
        entry["version"] = record.presence.version;
      } else {
        entry["reason"] = record.presence.reason;
      }
      entry["devices"] = DevicesJson(record);
      list.push_back(std::move(entry));
    }
    nlohmann::ordered_json json = {{"backends", std::move(list)}};
    for (const NamedCosts& named : *costs) json["transitions"][named.name] = CostsJson(named);
    const Status written = WriteJson(options.json, json);
    return written ? kDone : ReportError(written.error());
  }
  for (const BackendRecord& record : records) {
    const std::vector<FoundDevice> devices = DevicesOf(record);
    if (record.presence.present || devices.empty())
      std::printf("%-10s  %s\n", record.name.c_str(),
                  record.presence.present ? record.presence.version.c_str() : ("absent: " + record.presence.reason).c_str());
    for (const FoundDevice& found : devices) {
      const Presence presence = record.backend->Probe(found.device);
      std::printf("%-10s  %s: %s\n", record.name.c_str(), ToString(found.device).c_str(),
                  presence.present ? presence.version.c_str() : ("absent: " + presence.reason).c_str());
    }
  }
  for (const NamedCosts& named : *costs) PrintCosts(named);
  return kDone;
}

}  // namespace

void AddBackendsCommand(CLI::App& app, int& code) {
  CLI::App* command = app.add_subcommand("backends", "List the backends: name, version, present or why not");
  auto options = std::make_shared<Options>();
  command->add_option("--threads", options->threads, "Threads that backends would use")->check(ThreadCount())->capture_default_str();
  command->add_option("--json", options->json, "Write the list as JSON to this file; alone or -: standard output")
      ->expected(0, 1)
      ->default_str("-");
  command->add_flag("--costs", options->costs, "Measure what running one right after another adds, or take it from the cache");
  options->cache = DefaultCache();
  command->add_option("--cache", options->cache, "What keeps prices: a SQLite file, or the URL of a PostgreSQL database")
      ->default_str(DefaultCache());
  command->callback([options, command, &code] {
    if (command->count("--json") > 0 && options->json.empty()) options->json = "-";
    code = Run(*options);
  });
}

}  // namespace collage::tools
