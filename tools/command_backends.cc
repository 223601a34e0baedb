#include <cstdio>
#include <memory>

#include "collage/backend/registry.h"
#include "tools/command.h"
#include "tools/output.h"

namespace collage::tools {
namespace {

struct Options {
  int threads = AvailableThreads();
  std::string json;
};

int Run(const Options& options) {
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
      list.push_back(std::move(entry));
    }
    const Status written = WriteJson(options.json, {{"backends", std::move(list)}});
    return written ? kDone : ReportError(written.error());
  }
  for (const BackendRecord& record : records) {
    std::printf("%-10s  %s\n", record.name.c_str(),
                record.presence.present ? record.presence.version.c_str() : ("absent: " + record.presence.reason).c_str());
  }
  return kDone;
}

}  // namespace

void AddBackendsCommand(CLI::App& app, int& code) {
  CLI::App* command = app.add_subcommand("backends", "List the backends: name, version, present or why not");
  auto options = std::make_shared<Options>();
  command->add_option("--threads", options->threads, "Threads that backends would use")->check(CLI::PositiveNumber)->capture_default_str();
  command->add_option("--json", options->json, "Write the list as JSON to this file; alone or -: standard output")
      ->expected(0, 1)
      ->default_str("-");
  command->callback([options, command, &code] {
    if (command->count("--json") > 0 && options->json.empty()) options->json = "-";
    code = Run(*options);
  });
}

}  // namespace collage::tools
