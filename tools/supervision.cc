#include "tools/supervision.h"

#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "collage/cache/cache.h"
#include "collage/driver/plan_watch.h"
#include "collage/support/log.h"
#include "collage/support/process.h"
#include "tools/command.h"
#include "tools/interrupt.h"
#include "tools/output.h"

namespace collage::tools {
namespace {

// One step of a plan takes seconds at most; the worker gives a kernel as long (WorkerOptions).
constexpr double kHangSeconds = 90;

std::string SecondsOfHang() { return std::to_string(static_cast<int>(kHangSeconds)) + " s"; }

std::vector<std::string> OwnArguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

/// As the supervised process ended, so does this one.
int EndLike(const SupervisedEnd& end) {
  if (WIFEXITED(end.wait_status)) return WEXITSTATUS(end.wait_status);
  int signal = WTERMSIG(end.wait_status);
  if (signal == StopSignal() && end.requested != 0) {
    signal = end.requested;
  } else {
    const std::string reason = end.was_hanging ? ", because it stood still for more than " + SecondsOfHang() : "";
    std::fprintf(stderr, "collage: the compile was ended by %s%s\n", WaitStatusToString(end.wait_status).c_str(), reason.c_str());
  }
  std::signal(signal, SIG_DFL);
  ::raise(signal);
  constexpr int kSignalled = 128;
  return kSignalled + signal;
}

/// The kernel at fault, Invalid in the cache from now on; false when nobody is to blame.
Result<bool> Blame(const SupervisedEnd& end, const std::string& cache, std::set<std::string>& blamed) {
  if (!end.Crashed()) return false;
  const std::string reason = end.was_hanging ? "hung inside a whole plan, for more than " + SecondsOfHang()
                                             : "crashed inside a whole plan (" + WaitStatusToString(end.wait_status) + ")";
  const std::optional<CacheEntry> kernel = InvalidKernel(end.line, reason);
  if (!kernel || !blamed.insert(end.line).second) return false;
  MeasurementCache prices = COLLAGE_TRY(MeasurementCache::Open(cache));
  COLLAGE_TRY_STATUS(prices.Store(kernel->key, kernel->measurement));
  std::fprintf(stderr, "collage: %s %s %s; it is not used any more\n", kernel->key.backend.c_str(), kernel->key.variant.c_str(),
               reason.c_str());
  return true;
}

}  // namespace

Activity* SupervisedActivity() {
  static std::optional<Activity> activity = Activity::OfSupervisor();
  return activity ? &*activity : nullptr;
}

std::optional<int> RunSupervised(const std::string& cache) {
  if (SupervisedActivity()) return std::nullopt;
  const std::vector<std::string> arguments = OwnArguments();
  Result<Activity> activity = Activity::Create();
  if (!activity) {
    spdlog::warn("kernels that crash inside whole plans will end the compile: {}", activity.error().message);
    return std::nullopt;
  }
  std::set<std::string> blamed;
  while (true) {
    activity->Clear();
    const Result<SupervisedEnd> end = Supervise("/proc/self/exe", arguments, *activity, kHangSeconds, &InterruptRequested());
    if (!end) return ReportError(end.error());
    const Result<bool> goes_on = Blame(*end, cache, blamed);
    if (!goes_on) return ReportError(goes_on.error());
    if (!*goes_on) return EndLike(*end);
  }
}

}  // namespace collage::tools
