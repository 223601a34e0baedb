#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>

#include "collage/cache/cache_database.h"
#include "collage/cache/cache_maintenance.h"
#include "collage/runtime/device.h"
#include "collage/support/file.h"
#include "tools/command.h"
#include "tools/inputs.h"
#include "tools/output.h"
#include "tools/program.h"

namespace collage::tools {
namespace {

struct Options {
  std::string cache;
  std::string json;
  std::string file = "-";
  bool replace = false;
  std::string backend;
  std::string version;
  std::string older_than;
  bool invalid = false;
  bool other_devices = false;
  bool dry_run = false;

  [[nodiscard]] std::string path() const { return cache.empty() ? DefaultCache() : cache; }
};

Result<MeasurementCache> OpenExisting(const Options& options) {
  return MeasurementCache::Open(options.path(), MeasurementCache::Missing::kFail);
}

template <class Key>
nlohmann::ordered_json ToJson(const std::map<Key, size_t>& counts) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [key, count] : counts) {
    if constexpr (std::is_same_v<Key, std::string>) {
      json[key] = count;
    } else {
      json[std::to_string(key)] = count;
    }
  }
  return json;
}

void Print(const char* what, const nlohmann::ordered_json& counts) {
  for (const auto& [name, count] : counts.items()) std::printf("%-9s %8zu  %s\n", what, count.get<size_t>(), name.c_str());
}

Result<int> Stats(const Options& options) {
  const MeasurementCache cache = COLLAGE_TRY(OpenExisting(options));
  const CacheStatistics statistics = COLLAGE_TRY(StatisticsOf(cache));
  const nlohmann::ordered_json json = {{"file", WithoutPassword(options.path())},
                                       {"schema", statistics.schema},
                                       {"file_bytes", statistics.bytes},
                                       {"entries", statistics.entries},
                                       {"invalid", statistics.invalid},
                                       {"verified", statistics.verified},
                                       {"samples", statistics.samples},
                                       {"backends", ToJson(statistics.by_backend)},
                                       {"facts", ToJson(statistics.by_fact)},
                                       {"devices", ToJson(statistics.by_device)},
                                       {"threads", ToJson(statistics.by_threads)},
                                       {"protocols", ToJson(statistics.by_protocol)}};
  if (!options.json.empty()) {
    COLLAGE_TRY_STATUS(WriteJson(options.json, json));
    return kDone;
  }
  std::printf("%s: schema %d, %zu bytes\n%zu entries with %zu samples: %zu invalid, %zu verified\n",
              WithoutPassword(options.path()).c_str(), statistics.schema, statistics.bytes, statistics.entries, statistics.samples,
              statistics.invalid, statistics.verified);
  Print("backend", json["backends"]);
  Print("fact", json["facts"]);
  Print("device", json["devices"]);
  Print("threads", json["threads"]);
  Print("protocol", json["protocols"]);
  return kDone;
}

Status WriteStandardOutput(const std::string& text) {
  const bool is_whole = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  return is_whole ? Status{} : Fail("standard output: cannot be written");
}

Result<int> Export(const Options& options) {
  const MeasurementCache cache = COLLAGE_TRY(OpenExisting(options));
  if (options.file == "-") {
    // Nothing is printed of a cache that turns out to be damaged further down.
    std::string lines;
    COLLAGE_TRY_STATUS(ForEachEntry(cache, [&](const CacheEntry& entry) {
      lines += ToJsonLine(entry) + "\n";
      return Status{};
    }));
    COLLAGE_TRY_STATUS(WriteStandardOutput(lines));
    return kDone;
  }
  AtomicFile file = COLLAGE_TRY(AtomicFile::Create(options.file));
  COLLAGE_TRY_STATUS(ForEachEntry(cache, [&](const CacheEntry& entry) { return file.Append(ToJsonLine(entry) + "\n"); }));
  COLLAGE_TRY_STATUS(file.Commit());
  return kDone;
}

Result<int> Import(const Options& options) {
  std::ifstream file;
  if (options.file != "-") {
    file.open(options.file);
    if (!file) return Fail(options.file + ": cannot be opened");
  }
  MeasurementCache cache = COLLAGE_TRY(MeasurementCache::Open(options.path()));
  Result<ImportCounts> counts = ImportEntries(cache, options.file == "-" ? std::cin : file, options.replace);
  if (!counts) return Fail(counts.error().At(options.file == "-" ? "standard input" : options.file));
  std::printf("%zu added, %zu replaced, %zu kept as they were\n", counts->added, counts->replaced, counts->kept);
  return kDone;
}

Result<int> PruneCache(const Options& options) {
  PruneFilter filter;
  if (!options.backend.empty()) filter.backend = options.backend;
  if (!options.version.empty()) filter.backend_version = options.version;
  if (!options.older_than.empty()) {
    Result<double> seconds = ParseDuration(options.older_than);
    if (!seconds) return Fail(seconds.error().At("--older-than"));
    filter.stored_before = static_cast<int64_t>(static_cast<double>(std::time(nullptr)) - *seconds);
  }
  filter.invalid = options.invalid;
  if (options.other_devices) filter.not_of_device = Fingerprint(Device{DeviceKind::kCpu, 0, 1});
  if (!filter.backend && !filter.backend_version && !filter.stored_before && !filter.invalid && !filter.not_of_device)
    return Fail("cache prune: nothing says what to remove; give --backend, --version, --older-than, --invalid or --other-devices");
  MeasurementCache cache = COLLAGE_TRY(OpenExisting(options));
  const size_t removed = COLLAGE_TRY(Prune(cache, filter, options.dry_run));
  std::printf(options.dry_run ? "%zu would be removed\n" : "%zu removed\n", removed);
  return kDone;
}

Result<int> Verify(const Options& options) {
  const std::vector<std::string> problems = COLLAGE_TRY(ProblemsOf(options.path()));
  if (!options.json.empty()) {
    COLLAGE_TRY_STATUS(WriteJson(options.json, {{"file", WithoutPassword(options.path())}, {"problems", problems}}));
  } else {
    for (const std::string& problem : problems) std::printf("%s\n", problem.c_str());
    if (problems.empty()) std::printf("%s: whole\n", WithoutPassword(options.path()).c_str());
  }
  return problems.empty() ? kDone : kNo;
}

void AddSubCommand(CLI::App& cache, const char* name, const char* help, const std::shared_ptr<Options>& options, int& code,
                   Result<int> (*run)(const Options&), const std::function<void(CLI::App&)>& add_options) {
  CLI::App* command = cache.add_subcommand(name, help);
  command->add_option("--cache", options->cache, "The SQLite file, or the URL of a PostgreSQL database")->default_str(DefaultCache());
  add_options(*command);
  command->callback([options, run, &code] {
    const Result<int> done = run(*options);
    code = done ? *done : ReportError(done.error());
  });
}

void AddJsonOption(CLI::App& command, Options& options) {
  command.add_option("--json", options.json, "Write it as JSON to this file (-: standard output)");
}

void AddPruneOptions(CLI::App& command, Options& options) {
  command.add_option("--backend", options.backend, "Only of this backend");
  command.add_option("--version", options.version, "Only of this version of a backend");
  command.add_option("--older-than", options.older_than, "Only what was stored longer ago than 90s, 5m, 12h or 30d");
  command.add_flag("--invalid", options.invalid, "Only what could not be compiled or run, or was wrong");
  command.add_flag("--other-devices", options.other_devices, "Only what was measured on another kind of processor than this");
  command.add_flag("--dry-run", options.dry_run, "Only say how many");
}

}  // namespace

void AddCacheCommand(CLI::App& app, int& code) {
  CLI::App* cache = app.add_subcommand("cache", "Look at what keeps prices, carry it elsewhere, thin it out, check it");
  cache->require_subcommand(1);
  auto options = std::make_shared<Options>();
  AddSubCommand(*cache, "stats", "How many entries there are, of which backends, devices, thread counts and protocols", options, code,
                Stats, [&](CLI::App& command) { AddJsonOption(command, *options); });
  AddSubCommand(*cache, "export", "Write all entries as JSON Lines, one measurement a line", options, code, Export, [&](CLI::App& command) {
    command.add_option("file", options->file, "Written whole or not at all (-: standard output)")->capture_default_str();
  });
  AddSubCommand(*cache, "import", "Add the entries of an export; at the first error in it, none", options, code, Import,
                [&](CLI::App& command) {
                  command.add_option("file", options->file, "An export (-: standard input)")->capture_default_str();
                  command.add_flag("--replace", options->replace, "Entries that are there already are replaced, not kept");
                });
  AddSubCommand(*cache, "prune", "Remove the entries to which all given options apply, and shrink the file", options, code, PruneCache,
                [&](CLI::App& command) { AddPruneOptions(command, *options); });
  AddSubCommand(*cache, "verify", "Check the database and every entry in it; exit code 1 with a line for each problem", options, code,
                Verify, [&](CLI::App& command) { AddJsonOption(command, *options); });
}

}  // namespace collage::tools
