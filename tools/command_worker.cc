#include <cstdio>
#include <limits>
#include <memory>
#include <string>

#include "collage/backend/registry.h"
#include "collage/fleet/fleet_worker.h"
#include "collage/measure/worker.h"
#include "collage/runtime/device.h"
#include "tools/command.h"
#include "tools/inputs.h"
#include "tools/interrupt.h"
#include "tools/output.h"

namespace collage::tools {
namespace {

struct Options {
  std::string cache;
  std::string most_idle;
  int threads = AvailableThreads();
};

Status Work(const Options& options) {
  FleetWorkerOptions worker;
  worker.threads = options.threads;
  worker.most_idle_seconds = std::numeric_limits<double>::infinity();
  if (!options.most_idle.empty()) {
    Result<double> seconds = ParseDuration(options.most_idle);
    if (!seconds) return Fail(seconds.error().At("--most-idle"));
    worker.most_idle_seconds = *seconds;
  }
  worker.stop = [] { return InterruptRequested().load(); };
  MeasurementCache cache = COLLAGE_TRY(MeasurementCache::Open(options.cache));
  for (const BackendRecord& record : AvailableBackends({DeviceKind::kCpu, 0, options.threads})) {
    if (record.presence.present) worker.backends.emplace_back(record.name, record.presence.version);
  }
  WorkerTimer timer(WorkerOptions{DefaultWorkerProgram()});
  std::printf("%zu kernels timed\n", COLLAGE_TRY(ServeFleet(cache, timer, worker)));
  return {};
}

}  // namespace

void AddWorkerCommand(CLI::App& app, int& code) {
  CLI::App* command = app.add_subcommand("worker", "Time kernels for compiles on other machines, until Ctrl-C");
  auto options = std::make_shared<Options>();
  command
      ->add_option("--cache", options->cache,
                   "The PostgreSQL database that keeps the prices of these compiles, postgresql://user@host/database: their --cache")
      ->required();
  command->add_option("--threads", options->threads, "Kernels of more threads are left to others")
      ->check(ThreadCount())
      ->capture_default_str();
  command->add_option("--most-idle", options->most_idle, "End when there was nothing to do for so long: 90s, 5m or 12h");
  command->callback([options, &code] {
    const Status status = Work(*options);
    code = status ? kDone : ReportError(status.error());
  });
}

}  // namespace collage::tools
