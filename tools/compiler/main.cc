// collage_compiler MODEL OUTPUT OPTIONS: compiles, with options as JSON, and says on standard output, a line of JSON each, what it does
// and at last {"saved": OUTPUT} or {"error": message, "kind": "argument" or "compile"}. SIGINT asks it to end with what was measured.
// collage_compiler MODEL --profile-of PROGRAM OPTIONS: what it saves is kept beside that program file, and is made where it is not there.

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "collage/driver/compile.h"
#include "collage/driver/kept_profile.h"
#include "collage/runtime/parallel.h"
#include "collage/support/log.h"
#include "tools/command.h"
#include "tools/compiler/job.h"
#include "tools/interrupt.h"
#include "tools/supervision.h"

namespace collage::tools {
namespace {

/// Standard output, for this program alone: what libraries print goes to standard error from now on.
class Lines {
 public:
  Lines() : file_(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)) { ::dup2(STDERR_FILENO, STDOUT_FILENO); }

  void Write(const nlohmann::json& message) const {
    const std::string line = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    size_t written = 0;
    while (written < line.size()) {
      const ssize_t count = ::write(file_, line.data() + written, line.size() - written);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return;  // nobody listens any more
      written += static_cast<size_t>(count);
    }
  }

 private:
  int file_;
};

int End(const Lines& lines, const char* kind, const Error& error) {
  lines.Write({{"error", error.message}, {"kind", kind}});
  return kUserError;
}

Status Compile(const std::string& model, const std::string& output, CompileOptions options, const Lines& lines) {
  options.output = output;
  options.activity = SupervisedActivity();
  if (options.activity) options.seconds_spent = options.activity->SecondsSinceCreated();
  const auto report = [&](const ProgressEvent& event) {
    lines.Write({{"stage", event.stage}, {"done", event.done}, {"total", event.total}, {"detail", event.detail}});
  };
  options.progress = {report, &InterruptRequested()};
  COLLAGE_TRY(CompileModel(model, options));
  return {};
}

/// The file that is kept.
Result<std::string> CompileProfileOf(const std::string& program, const std::string& model, const CompileOptions& options,
                                     const Lines& lines) {
  if (options.profiles.size() != 1) return Fail("several profiles were stated, and one is kept");
  const std::filesystem::path kept = COLLAGE_TRY(KeptProfile(program, model, options));
  COLLAGE_TRY_STATUS(MakeKeptProfile(kept, [&] { return Compile(model, kept, options, lines); }));
  return kept.string();
}

int Run(int argc, char** argv) {
  InitialiseLogging();
  PrepareThreadPool();
  const bool is_supervised = SupervisedActivity() != nullptr;
  // Its caller has nobody else to end it.
  if (!is_supervised) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  InstallInterruptHandler(is_supervised);
  const bool is_profile = argc == 5 && argv[2] == std::string_view("--profile-of");
  if (argc != 4 && !is_profile) {
    std::fprintf(stderr, "collage_compiler MODEL OUTPUT OPTIONS: is started by collage_compile\n");
    return kUserError;
  }
  const Result<CompileOptions> options = ReadJobOptions(argv[argc - 1]);
  if (!options) return End(Lines(), "argument", options.error());
  if (const std::optional<int> done = RunSupervised(options->cache)) return *done;
  const Lines lines;
  Result<std::string> saved = argv[2];
  if (is_profile) {
    saved = CompileProfileOf(argv[3], argv[1], *options, lines);
  } else if (const Status compiled = Compile(argv[1], argv[2], *options, lines); !compiled) {
    saved = Fail(compiled.error());
  }
  if (!saved) return End(lines, "compile", saved.error());
  lines.Write({{"saved", *saved}});
  return kDone;
}

}  // namespace
}  // namespace collage::tools

int main(int argc, char** argv) {
  try {
    return collage::tools::Run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "collage: this is a bug of Collage: %s\n", error.what());
    std::abort();
  }
}
