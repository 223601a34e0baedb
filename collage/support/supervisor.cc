#include "collage/support/supervisor.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "collage/support/check.h"
#include "collage/support/clock.h"

namespace collage {
namespace {

// "descriptor:process of the supervisor", for the supervised process.
constexpr const char* kVariable = "COLLAGE_SUPERVISOR";
// Pages are there only once they are written.
constexpr size_t kBytes = size_t{64} << 20;

tl::unexpected<Error> SystemError(const std::string& what) { return Fail(what + ": " + std::strerror(errno)); }

}  // namespace

struct Activity::Shared {
  std::atomic<uint64_t> now;
  std::atomic<uint64_t> used;
  int64_t created;  // of a clock that all processes share
  static constexpr size_t kRoom = kBytes - 2 * sizeof(std::atomic<uint64_t>) - sizeof(int64_t);
  char lines[kRoom];
};

Result<Activity> Activity::Map(int descriptor) {
  void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (memory == MAP_FAILED) return SystemError("mmap");
  // All zeros is the state in which nothing was said.
  return Activity(descriptor, static_cast<Shared*>(memory));
}

Result<Activity> Activity::Create() {
  const int descriptor = ::memfd_create("collage activity", MFD_CLOEXEC);
  if (descriptor < 0) return SystemError("memfd_create");
  Result<Activity> activity = ::ftruncate(descriptor, kBytes) == 0 ? Map(descriptor) : Result<Activity>(SystemError("ftruncate"));
  if (activity) {
    activity->shared_->created = Clock::now().time_since_epoch().count();
  } else {
    ::close(descriptor);
  }
  return activity;
}

std::optional<Activity> Activity::OfSupervisor() {
  const char* variable = std::getenv(kVariable);
  if (!variable) return std::nullopt;
  const std::string_view text = variable;
  int descriptor = -1;
  pid_t supervisor = -1;
  const auto [colon, error] = std::from_chars(text.data(), text.data() + text.size(), descriptor);
  if (error != std::errc() || colon == text.data() + text.size()) return std::nullopt;
  std::from_chars(colon + 1, text.data() + text.size(), supervisor);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A process that was started by the supervised one is not supervised.
  if (::getppid() != supervisor || ::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) {
    ::prctl(PR_SET_PDEATHSIG, 0);
    return std::nullopt;
  }
  // Linux names a process after the file that it was started from, which a supervisor may call /proc/self/exe.
  ::prctl(PR_SET_NAME, program_invocation_short_name);
  Result<Activity> activity = Map(descriptor);
  if (!activity) return std::nullopt;
  return std::move(*activity);
}

Activity::Activity(Activity&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      shared_(std::exchange(other.shared_, nullptr)),
      numbers_(std::move(other.numbers_)) {}

Activity::~Activity() {
  if (shared_) ::munmap(shared_, kBytes);
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Activity::Clear() {
  shared_->now.store(0);
  shared_->used.store(0);
  numbers_.clear();
}

double Activity::SecondsSinceCreated() const {
  const Clock::time_point created{Clock::duration(shared_->created)};
  return Clock::SecondsSince(created);
}

std::atomic<uint64_t>& Activity::now() const { return shared_->now; }

uint32_t Activity::NumberOf(const std::string& line) {
  COLLAGE_CHECK(line.find('\n') == std::string::npos, line);
  const auto found = numbers_.find(line);
  if (found != numbers_.end()) return found->second;
  const uint64_t used = shared_->used.load(std::memory_order_relaxed);
  if (used + line.size() + 1 > Shared::kRoom) return 0;
  std::memcpy(shared_->lines + used, line.data(), line.size());
  shared_->lines[used + line.size()] = '\n';
  shared_->used.store(used + line.size() + 1, std::memory_order_release);
  return numbers_.emplace(line, static_cast<uint32_t>(numbers_.size() + 1)).first->second;
}

std::string Activity::CurrentLine() const {
  const auto number = static_cast<uint32_t>(shared_->now.load(std::memory_order_acquire));
  const char* at = shared_->lines;
  // The process that wrote it has crashed: its word is not taken for how much there is.
  const char* const end = at + std::min<uint64_t>(shared_->used.load(std::memory_order_acquire), Shared::kRoom);
  for (uint32_t i = 1; number != 0 && at != end; ++i) {
    const char* const newline = std::find(at, end, '\n');
    if (i == number) return {at, newline};
    at = newline == end ? end : newline + 1;
  }
  return {};
}

bool SupervisedEnd::Crashed() const {
  if (was_hanging || !WIFSIGNALED(wait_status)) return was_hanging;
  const int signal = WTERMSIG(wait_status);
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE || signal == SIGABRT || signal == SIGSYS;
}

int StopSignal() { return SIGUSR1; }

void AcceptStopSignal(void (*handler)(int signal)) {
  std::signal(StopSignal(), handler);
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, StopSignal());
  ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
}

namespace {

sigset_t SignalsOfSupervisor() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM}) ::sigaddset(&signals, signal);
  return signals;
}

/// With the signals of a supervisor blocked, so that they can be waited for; as they were when it goes.
class BlockedSignals {
 public:
  BlockedSignals() {
    const sigset_t signals = SignalsOfSupervisor();
    ::sigprocmask(SIG_BLOCK, &signals, &before_);
  }
  ~BlockedSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  [[nodiscard]] const sigset_t& before() const { return before_; }

 private:
  sigset_t before_;
};

Result<pid_t> Start(const std::string& program, const std::vector<std::string>& arguments, const Activity& activity,
                    const sigset_t& signals) {
  std::vector<char*> words;
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  const std::string variable = std::string(kVariable) + "=" + std::to_string(activity.descriptor()) + ":" + std::to_string(::getpid());
  std::vector<char*> environment;
  for (char** entry = environ; *entry; ++entry) {
    if (std::strncmp(*entry, kVariable, std::strlen(kVariable)) != 0) environment.push_back(*entry);
  }
  environment.push_back(const_cast<char*>(variable.c_str()));
  environment.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  // Onto itself: the descriptor stays open.
  ::posix_spawn_file_actions_adddup2(&actions, activity.descriptor(), activity.descriptor());
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  sigset_t blocked = signals;
  ::sigaddset(&blocked, StopSignal());
  ::posix_spawnattr_setsigmask(&attributes, &blocked);
  pid_t process = 0;
  const int error = ::posix_spawn(&process, program.c_str(), &actions, &attributes, words.data(), environment.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Fail(program + ": cannot be started: " + std::strerror(error));
  return process;
}

}  // namespace

Result<SupervisedEnd> Supervise(const std::string& program, const std::vector<std::string>& arguments, const Activity& activity,
                                double most_seconds, const std::atomic<bool>* is_stop_requested) {
  const BlockedSignals blocked;
  // Waits until it is looked for below.
  if (is_stop_requested && *is_stop_requested) ::raise(SIGINT);
  const sigset_t signals = SignalsOfSupervisor();
  const pid_t process = COLLAGE_TRY(Start(program, arguments, activity, blocked.before()));
  SupervisedEnd end;
  uint64_t last = 0;
  double seconds_of_last = 0;
  while (true) {
    constexpr timespec kBetweenLooks{0, 200'000'000};
    constexpr double kMostOfOneLook = 0.5;  // longer ones are those in which both processes were stopped
    const Clock::time_point start = Clock::now();
    const int signal = ::sigtimedwait(&signals, nullptr, &kBetweenLooks);
    if (signal == SIGINT || signal == SIGTERM) {
      end.requested = signal;
      ::kill(process, StopSignal());
    }
    if (::waitpid(process, &end.wait_status, WNOHANG) == process) break;
    const uint64_t now = activity.now().load(std::memory_order_relaxed);
    if (std::exchange(last, now) != now) seconds_of_last = 0;
    seconds_of_last += std::min(kMostOfOneLook, Clock::SecondsSince(start));
    if (now == 0 || seconds_of_last < most_seconds || end.was_hanging) continue;
    end.was_hanging = true;
    ::kill(process, SIGKILL);
  }
  end.line = activity.CurrentLine();
  return end;
}

}  // namespace collage
