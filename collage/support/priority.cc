#include "collage/support/priority.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

namespace collage {
namespace {

constexpr int kFirst = -20;
constexpr const char* kSessionFile = "/proc/self/autogroup";

// Linux keeps a nice value for each thread, and the calls take a thread's number where POSIX says process.
bool SetForAllThreads(int nice) {
  std::error_code error;
  bool all = true;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const auto thread = static_cast<id_t>(std::stoul(entry.path().filename().string()));
    all = ::setpriority(PRIO_PROCESS, thread, nice) == 0 && all;
  }
  return all && !error;
}

/// "/autogroup-186 nice 0"; nothing where sessions are not grouped.
std::optional<int> SessionNice() {
  std::ifstream file(kSessionFile);
  std::string group;
  std::string word;
  int nice = 0;
  if (file >> group >> word >> nice) return nice;
  return std::nullopt;
}

/// Only what is safe after fork() in a process of many threads.
bool WriteSessionNice(const char* text, size_t size) {
  const int file = ::open(kSessionFile, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool written = ::write(file, text, size) == static_cast<ssize_t>(size);
  ::close(file);
  return written;
}

[[noreturn]] void Guard(int alive, const char* before, size_t size) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_IGN);
  char byte = 0;
  while (::read(alive, &byte, 1) < 0 && errno == EINTR) {
  }
  ::_exit(WriteSessionNice(before, size) ? 0 : 1);
}

}  // namespace

RaisedPriority::RaisedPriority(Reach reach) {
  errno = 0;
  const int nice = ::getpriority(PRIO_PROCESS, 0);
  if (errno != 0 || nice <= kFirst || ::setpriority(PRIO_PROCESS, 0, kFirst) != 0) return;
  before_ = nice;
  SetForAllThreads(kFirst);
  if (reach == Reach::kSession) RaiseSession();
}

RaisedPriority::~RaisedPriority() {
  if (before_) SetForAllThreads(*before_);
  if (guard_ < 0) return;
  ::close(alive_);
  while (::waitpid(guard_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void RaisedPriority::RaiseSession() {
  const std::optional<int> session = SessionNice();
  int ends[2];
  if (!session || *session <= kFirst || ::pipe2(ends, O_CLOEXEC) != 0) return;
  const std::string before = std::to_string(*session);
  guard_ = ::fork();
  if (guard_ == 0) {
    ::close(ends[1]);
    Guard(ends[0], before.data(), before.size());
  }
  ::close(ends[0]);
  alive_ = ends[1];
  const std::string first = std::to_string(kFirst);
  if (guard_ < 0) {
    ::close(alive_);
  } else {
    WriteSessionNice(first.data(), first.size());
  }
}

}  // namespace collage
