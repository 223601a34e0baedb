#include "collage/measure/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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

Measurement ToMeasurement(const Json& answer, const std::string& invalid_reason) {
  if (!invalid_reason.empty()) return {{}, invalid_reason};
  if (!answer.contains("samples") || !answer.contains("anchors")) return {{}, "the worker sent no samples"};
  return {answer.at("samples").get<std::vector<double>>(),
          {},
          answer.at("anchors").get<std::vector<double>>(),
          answer.value("compile_seconds", 0.0)};
}

bool IsLarge(const KernelJob& job) { return ConstantBytes(job.function) >= kLargeWeights; }

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

/// What a process has been asked for.
struct WorkerTimer::Task {
  size_t process;
  std::string stage = "reading its function";
  Clock::time_point start = Clock::now();  ///< of the stage
  std::optional<Outcome> outcome = {};

  void Enter(std::string next) {
    stage = std::move(next);
    start = Clock::now();
  }
  [[nodiscard]] bool Waits() const { return !outcome && stage == kWaiting; }
  [[nodiscard]] bool IsAtWork() const { return !outcome && stage != kWaiting; }
};

WorkerTimer::WorkerTimer(WorkerOptions options) : options_(std::move(options)), processes_(options_.at_once) {}
WorkerTimer::~WorkerTimer() = default;

Result<WorkerTimer::Task> WorkerTimer::Begin(size_t number, const Json& request) {
  std::unique_ptr<Process>& process = processes_[number];
  // What earlier jobs have left behind is nobody's fault in particular.
  if (process && process->bytes() > options_.most_bytes / 2) process.reset();
  while (true) {
    const bool is_new = !process;
    if (is_new) {
      process = COLLAGE_TRY(Process::Start(options_.program));
      ++starts_;
    }
    if (SendMessage(process->socket(), request)) return Task{number};
    const std::string how = process->Await();
    process.reset();
    if (is_new) return Fail(options_.program.string() + ": ended at once (" + how + ")");
    // It had ended between two jobs.
  }
}

void WorkerTimer::EndAll() {
  for (std::unique_ptr<Process>& process : processes_) process.reset();
}

void WorkerTimer::End(Task& task, std::string invalid_reason) {
  processes_[task.process].reset();
  task.outcome = Outcome{{}, std::move(invalid_reason)};
}

void WorkerTimer::Receive(Task& task) {
  Process& process = *processes_[task.process];
  std::optional<Json> message = ReceiveMessage(process.socket());
  if (!message) return End(task, "crashed while " + task.stage + " (" + process.Await() + ")");
  if (message->contains("stage")) return task.Enter((*message)["stage"]);
  task.outcome = Outcome{std::move(*message), {}};
  if (task.outcome->answer.contains("invalid")) task.outcome->invalid_reason = task.outcome->answer["invalid"];
  if (task.outcome->answer.contains(kLostItsDevice)) processes_[task.process].reset();
}

void WorkerTimer::Await(std::span<Task> tasks) {
  constexpr int kMillisecondsBetweenLooks = 50;  // a process takes some hundred MiB more in it, little beside what it may take
  while (true) {
    std::vector<pollfd> polls;
    std::vector<Task*> at_work;
    for (Task& task : tasks) {
      if (!task.IsAtWork()) continue;
      polls.push_back({processes_[task.process]->socket(), POLLIN, 0});
      at_work.push_back(&task);
    }
    if (at_work.empty()) return;
    ::poll(polls.data(), polls.size(), kMillisecondsBetweenLooks);
    for (size_t i = 0; i < at_work.size(); ++i) {
      Task& task = *at_work[i];
      const size_t bytes = processes_[task.process]->bytes();
      if (bytes > options_.most_bytes) {
        End(task, "took " + MiB(bytes) + " of memory while " + task.stage + ", more than " + MiB(options_.most_bytes));
      } else if (polls[i].revents != 0) {
        Receive(task);
      } else if (Clock::SecondsSince(task.start) > options_.most_seconds) {
        End(task, "was still " + task.stage + " after " + std::to_string(static_cast<int>(options_.most_seconds)) + " s");
      }
    }
  }
}

Result<WorkerTimer::Outcome> WorkerTimer::Do(const Json& request) {
  Task task = COLLAGE_TRY(Begin(0, request));
  Await({&task, 1});
  return std::move(*task.outcome);
}

Result<Measurement> WorkerTimer::Measure(const KernelJob& job) {
  // What a heap keeps for later of an earlier kernel's compiler would lie beside these weights and their packed form.
  if (IsLarge(job)) EndAll();
  return MeasureMessage(ToMessage(job, Weights::kSamples));
}

Result<Measurement> WorkerTimer::MeasureMessage(const Json& job) {
  const Outcome outcome = COLLAGE_TRY(Do({{"action", "measure"}, {"job", job}}));
  return ToMeasurement(outcome.answer, outcome.invalid_reason);
}

Result<std::vector<Measurement>> WorkerTimer::MeasureEach(std::span<const KernelJob> jobs) {
  return jobs.size() > 1 && Together(jobs) == jobs.size() ? MeasureTogether(jobs) : KernelTimer::MeasureEach(jobs);
}

size_t WorkerTimer::Together(std::span<const KernelJob> jobs) const {
  const auto some = jobs.first(std::min(options_.at_once, jobs.size()));
  return std::max<size_t>(1, static_cast<size_t>(std::find_if(some.begin(), some.end(), IsLarge) - some.begin()));
}

Result<std::vector<Measurement>> WorkerTimer::MeasureTogether(std::span<const KernelJob> jobs) {
  std::vector<Task> tasks;
  for (const KernelJob& job : jobs) {
    const Json request = {{"action", "measure"}, {"job", ToMessage(job, Weights::kSamples)}, {"waits", true}};
    Result<Task> task = Begin(tasks.size(), request);
    // Nobody will hear what the others answer.
    if (!task) EndAll();
    tasks.push_back(COLLAGE_TRY(std::move(task)));
  }
  Await(tasks);
  std::vector<Measurement> measurements;
  for (Task& task : tasks) {
    if (task.Waits()) {
      task.Enter("running");
      // Where it has gone meanwhile, that is received.
      SendMessage(processes_[task.process]->socket(), {{"action", "go on"}});
      Await({&task, 1});
    }
    measurements.push_back(ToMeasurement(task.outcome->answer, task.outcome->invalid_reason));
  }
  return measurements;
}

Result<double> WorkerTimer::Difference(const KernelJob& job) {
  const bool carries_model = CallOfOriginal(*job.function->As<Function>()) != nullptr;
  const Outcome outcome =
      COLLAGE_TRY(Do({{"action", "difference"}, {"job", ToMessage(job, carries_model ? Weights::kAll : Weights::kSamples)}}));
  if (!outcome.invalid_reason.empty()) return Fail(outcome.invalid_reason);
  if (!outcome.answer.contains("difference")) return Fail("the worker sent no difference");
  // A difference that is no number travels as null.
  const Json& difference = outcome.answer.at("difference");
  return difference.is_number() ? difference.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

Status WorkerTimer::CheckDevice(const Backend& backend, const Device& device) {
  if (device.kind == DeviceKind::kCpu) return {};
  const Json request = {{"action", "check"}, {"job", ToMessage(backend, device)}};
  const bool is_new = !processes_.front();
  Outcome outcome = COLLAGE_TRY(Do(request));
  if (!outcome.invalid_reason.empty() && !is_new) outcome = COLLAGE_TRY(Do(request));
  return outcome.invalid_reason.empty() ? Status() : Fail(outcome.invalid_reason);
}

std::filesystem::path DefaultWorkerProgram() { return SharedObjectOf(&DefaultWorkerProgram).parent_path() / "collage" / "collage_worker"; }

}  // namespace collage
