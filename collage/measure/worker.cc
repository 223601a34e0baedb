#include "collage/measure/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "collage/ir/constant_memory.h"
#include "collage/ir/original_model.h"
#include "collage/support/clock.h"
#include "collage/support/log.h"
#include "collage/support/process.h"
#include "collage/support/shared_object.h"

namespace collage {
namespace {

using Json = nlohmann::json;

size_t ResidentBytes(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/statm");
  size_t all = 0;
  size_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

std::string MiB(size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

/// A running worker. Its end is awaited when it goes.
class WorkerTimer::Process {
 public:
  static Result<std::unique_ptr<Process>> Start(const std::filesystem::path& program) {
    int sockets[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return Fail(std::string("socketpair: ") + std::strerror(errno));
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, sockets[1], STDIN_FILENO);
    const bool is_verbose = spdlog::default_logger()->should_log(spdlog::level::debug);
    if (!is_verbose) ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    const Result<pid_t> process = Spawn(program, {}, actions);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(sockets[1]);
    if (process) return std::unique_ptr<Process>(new Process(*process, sockets[0]));
    ::close(sockets[0]);
    return Fail(process.error());
  }

  ~Process() {
    ::close(socket_);
    if (!ended_) ::kill(process_, SIGKILL);
    if (!ended_) Await();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] int socket() const { return socket_; }
  [[nodiscard]] size_t bytes() const { return ResidentBytes(process_); }
  void Kill() { ::kill(process_, SIGKILL); }

  /// How the process ended, in words. Waits for the end.
  std::string Await() {
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    ended_ = true;
    return WaitStatusToString(status);
  }

 private:
  Process(pid_t process, int socket) : process_(process), socket_(socket) {}

  pid_t process_;
  int socket_;
  bool ended_ = false;
};

struct WorkerTimer::Outcome {
  Json answer;
  std::string invalid_reason;
};

WorkerTimer::WorkerTimer(WorkerOptions options) : options_(std::move(options)) {}
WorkerTimer::~WorkerTimer() = default;

Result<WorkerTimer::Outcome> WorkerTimer::Do(const char* action, const Json& job) {
  // What earlier jobs have left behind is nobody's fault in particular.
  if (process_ && process_->bytes() > options_.most_bytes / 2) process_.reset();
  const bool is_new = !process_;
  if (is_new) {
    process_ = COLLAGE_TRY(Process::Start(options_.program));
    ++starts_;
  }
  std::string stage = "reading its function";
  const auto end = [&](std::string reason) {
    process_.reset();
    return Outcome{{}, std::move(reason)};
  };
  if (!SendMessage(process_->socket(), {{"action", action}, {"job", job}})) {
    const std::string how = process_->Await();
    process_.reset();
    if (is_new) return Fail(options_.program.string() + ": ended at once (" + how + ")");
    return Do(action, job);  // it had ended between two jobs
  }
  const Clock::time_point start = Clock::now();
  while (true) {
    pollfd poll{process_->socket(), POLLIN, 0};
    constexpr int kMillisecondsBetweenLooks = 50;
    const int ready = ::poll(&poll, 1, kMillisecondsBetweenLooks);
    if (const size_t bytes = process_->bytes(); bytes > options_.most_bytes)
      return end("took " + MiB(bytes) + " of memory while " + stage + ", more than " + MiB(options_.most_bytes));
    if (ready > 0) {
      std::optional<Json> message = ReceiveMessage(process_->socket());
      if (!message) return end("crashed while " + stage + " (" + process_->Await() + ")");
      if (!message->contains("stage")) {
        Outcome outcome{std::move(*message), {}};
        if (outcome.answer.contains("invalid")) outcome.invalid_reason = outcome.answer["invalid"];
        return outcome;
      }
      stage = (*message)["stage"];
    }
    if (Clock::SecondsSince(start) > options_.most_seconds)
      return end("was still " + stage + " after " + std::to_string(static_cast<int>(options_.most_seconds)) + " s");
  }
}

Result<Measurement> WorkerTimer::Measure(const KernelJob& job) {
  // What a heap keeps for later of an earlier kernel's compiler would lie beside these weights and their packed form.
  if (ConstantBytes(job.function) >= kLargeWeights) process_.reset();
  return MeasureMessage(ToMessage(job, Weights::kSamples));
}

Result<Measurement> WorkerTimer::MeasureMessage(const Json& job) {
  const Outcome outcome = COLLAGE_TRY(Do("measure", job));
  if (!outcome.invalid_reason.empty()) return Measurement{{}, outcome.invalid_reason};
  if (!outcome.answer.contains("samples") || !outcome.answer.contains("anchors")) return Measurement{{}, "the worker sent no samples"};
  return Measurement{outcome.answer.at("samples").get<std::vector<double>>(), {}, outcome.answer.at("anchors").get<std::vector<double>>()};
}

Result<double> WorkerTimer::Difference(const KernelJob& job) {
  const bool carries_model = CallOfOriginal(*job.function->As<Function>()) != nullptr;
  const Outcome outcome = COLLAGE_TRY(Do("difference", ToMessage(job, carries_model ? Weights::kAll : Weights::kSamples)));
  if (!outcome.invalid_reason.empty()) return Fail(outcome.invalid_reason);
  if (!outcome.answer.contains("difference")) return Fail("the worker sent no difference");
  // A difference that is no number travels as null.
  const Json& difference = outcome.answer.at("difference");
  return difference.is_number() ? difference.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::filesystem::path DefaultWorkerProgram() { return SharedObjectOf(&DefaultWorkerProgram).parent_path() / "collage" / "collage_worker"; }

}  // namespace collage
