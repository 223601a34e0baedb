#include "collage/c_compile/compiler_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "collage/support/process.h"
#include "collage/support/shared_object.h"

namespace collage {

std::filesystem::path CompilerProcess::Program() {
  return SharedObjectOf(&CompilerProcess::Program).parent_path() / "collage" / "collage_compiler";
}

Result<CompilerProcess> CompilerProcess::Start(const std::filesystem::path& program, const std::vector<std::string>& arguments) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return Fail(std::string("pipe: ") + std::strerror(errno));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  // The caller may have blocked or ignored what it is told to stop by, which is to wait until the program can be told.
  sigset_t blocked;
  sigset_t usual;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGINT);
  ::sigemptyset(&usual);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD, SIGUSR1, SIGPIPE}) ::sigaddset(&usual, signal);
  ::posix_spawnattr_setsigmask(&attributes, &blocked);
  ::posix_spawnattr_setsigdefault(&attributes, &usual);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const Result<pid_t> process = Spawn(program, arguments, actions, &attributes);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[1]);
  if (process) return CompilerProcess(*process, pipe[0]);
  ::close(pipe[0]);
  return Fail(process.error());
}

CompilerProcess::CompilerProcess(CompilerProcess&& other) noexcept
    : process_(std::exchange(other.process_, 0)), pipe_(std::exchange(other.pipe_, -1)), rest_(std::move(other.rest_)) {}

CompilerProcess::~CompilerProcess() {
  // Before the pipe goes: it is not to complain of that.
  if (process_ != 0) ::kill(process_, SIGKILL);
  if (process_ != 0) Await();
  if (pipe_ >= 0) ::close(pipe_);
}

std::optional<std::vector<std::string>> CompilerProcess::ReadLines(int milliseconds) {
  std::vector<std::string> lines;
  pollfd poll{pipe_, POLLIN, 0};
  if (::poll(&poll, 1, milliseconds) <= 0) return lines;
  std::array<char, 1 << 16> buffer;
  const ssize_t count = ::read(pipe_, buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return lines;
  if (count <= 0) return std::nullopt;
  rest_.append(buffer.data(), static_cast<size_t>(count));
  size_t begin = 0;
  for (size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
    lines.push_back(rest_.substr(begin, end - begin));
    begin = end + 1;
  }
  rest_.erase(0, begin);
  return lines;
}

void CompilerProcess::Stop() const { ::kill(process_, SIGINT); }

std::string CompilerProcess::Await() {
  int status = 0;
  pid_t ended = 0;
  do {
    ended = ::waitpid(process_, &status, 0);
  } while (ended < 0 && errno == EINTR);
  process_ = 0;
  // A caller that ignores SIGCHLD is not told.
  return ended < 0 ? "it is not known how" : WaitStatusToString(status);
}

}  // namespace collage
