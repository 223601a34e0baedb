// collage-conformance --target NAME [--plugin FILE] [--cases TEXT]: holds a backend to the contract (tests/conformance/case_check.h), a
// line for each program of the corpus. The work is done in a supervised process: a case that crashes or hangs has failed, and the next
// process goes on behind it.

#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "collage/runtime/parallel.h"
#include "collage/support/log.h"
#include "collage/support/process.h"
#include "collage/support/supervisor.h"
#include "tests/conformance/backends.h"
#include "tests/conformance/case_check.h"
#include "tests/conformance/corpus.h"
#include "tools/command.h"
#include "tools/plugins.h"

namespace collage::conformance {
namespace {

using tools::kDone;
using tools::kNo;
using tools::kUserError;

// A case takes seconds at most; a kernel of a compile gets as long (WorkerOptions).
constexpr double kHangSeconds = 90;

struct Options {
  std::string target;
  std::string cases;
  std::string resume;
};

/// How far it is, also from one process to the next.
struct Tally {
  size_t next = 0;  ///< case
  size_t passed = 0;
  size_t refused = 0;
  size_t failed = 0;
  size_t kernels = 0;

  static Tally Parse(const std::string& text) {
    Tally tally;
    std::istringstream(text) >> tally.next >> tally.passed >> tally.refused >> tally.failed >> tally.kernels;
    return tally;
  }
  [[nodiscard]] std::string ToText() const {
    std::ostringstream text;
    text << next << ' ' << passed << ' ' << refused << ' ' << failed << ' ' << kernels;
    return text.str();
  }
};

int ReportError(const std::string& message) {
  std::fprintf(stderr, "collage-conformance: %s\n", message.c_str());
  return kUserError;
}

void Count(const std::string& name, const CaseResult& result, Tally& tally) {
  tally.kernels += result.kernels;
  if (!result.problems.empty()) {
    ++tally.failed;
    std::printf("failed   %s\n", name.c_str());
    for (const std::string& problem : result.problems) std::printf("           %s\n", problem.c_str());
  } else if (!result.refusal.empty()) {
    ++tally.refused;
    std::printf("refused  %s: %s\n", name.c_str(), result.refusal.c_str());
  } else {
    ++tally.passed;
    std::printf("passed   %s: %zu partitions, %zu kernels\n", name.c_str(), result.partitions, result.kernels);
  }
  std::fflush(stdout);
}

int Check(const Options& options, Activity& activity) {
  const Device host{DeviceKind::kCpu, 0, 2};
  const Result<BackendRecord> record = FindTested(options.target, host);
  if (!record) return ReportError("--target " + options.target + ": " + record.error().message);
  const Result<std::vector<ProgramCase>> named = CasesNamed(options.cases);
  if (!named) return ReportError("--cases " + options.cases + ": " + named.error().message);
  const std::vector<ProgramCase>& cases = *named;
  Tally tally = Tally::Parse(options.resume);
  CaseChecker checker(*record->backend);
  for (; tally.next < cases.size(); ++tally.next) {
    activity.now().store((uint64_t{tally.next + 1} << 32) | activity.NumberOf(tally.ToText()));
    Count(cases[tally.next].name, checker.Check(cases[tally.next]), tally);
  }
  activity.now().store(0);
  std::printf("%s %s: %zu programs: %zu passed, %zu refused, %zu failed; %zu kernels\n", record->name.c_str(),
              record->presence.version.c_str(), cases.size(), tally.passed, tally.refused, tally.failed, tally.kernels);
  if (tally.passed + tally.failed == 0) std::printf("it takes nothing of these programs, so nothing was tested\n");
  return tally.failed == 0 && tally.passed > 0 ? kDone : kNo;
}

int Supervise(const std::vector<std::string>& arguments, const Options& options) {
  Result<Activity> activity = Activity::Create();
  if (!activity) return ReportError(activity.error().message);
  const Result<std::vector<ProgramCase>> cases = CasesNamed(options.cases);
  if (!cases) return ReportError("--cases " + options.cases + ": " + cases.error().message);
  Tally tally;
  while (true) {
    std::vector<std::string> words = arguments;
    words.insert(words.end(), {"--resume", tally.ToText()});
    activity->Clear();
    const Result<SupervisedEnd> end = collage::Supervise("/proc/self/exe", words, *activity, kHangSeconds);
    if (!end) return ReportError(end.error().message);
    if (WIFEXITED(end->wait_status)) return WEXITSTATUS(end->wait_status);
    const std::string how = end->was_hanging ? "hung" : "crashed (" + WaitStatusToString(end->wait_status) + ")";
    if (!end->Crashed() || end->line.empty()) {
      std::fprintf(stderr, "collage-conformance: ended by %s\n", WaitStatusToString(end->wait_status).c_str());
      return kNo;
    }
    tally = Tally::Parse(end->line);
    CaseResult result;
    result.problems.push_back("it " + how);
    Count(cases->at(tally.next++).name, result, tally);
  }
}

int Run(int argc, char** argv) {
  InitialiseLogging();
  PrepareThreadPool();
  CLI::App app("Holds a backend to the contract: what it takes of a corpus of programs has to compute what the operators define.",
               "collage-conformance");
  Options options;
  app.add_option("--target", options.target, "The backend's name")->required();
  app.add_option("--cases", options.cases, "Only programs whose names hold this text");
  app.add_option("--resume", options.resume, "For its own use: how far the process before has come")->group("");
  tools::AddPluginOption(app);
  std::optional<Activity> activity = Activity::OfSupervisor();
  try {
    app.parse(argc, argv);
  } catch (const tools::OptionError& error) {
    return ReportError(error.what());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return ReportError(std::string(error.what()) + "; --help lists what there is");
  }
  if (activity) AcceptStopSignal(SIG_DFL);
  return activity ? Check(options, *activity) : Supervise({argv, argv + argc}, options);
}

}  // namespace
}  // namespace collage::conformance

int main(int argc, char** argv) {
  try {
    return collage::conformance::Run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "collage-conformance: this is a bug of Collage: %s\n", error.what());
    std::abort();
  }
}
