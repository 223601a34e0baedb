#include "collage/support/priority.h"

#include <sys/resource.h>

#include <cerrno>
#include <filesystem>
#include <string>

namespace collage {
namespace {

constexpr int kFirst = -20;

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

}  // namespace

RaisedPriority::RaisedPriority() {
  errno = 0;
  const int nice = ::getpriority(PRIO_PROCESS, 0);
  if (errno != 0 || nice <= kFirst || ::setpriority(PRIO_PROCESS, 0, kFirst) != 0) return;
  before_ = nice;
  SetForAllThreads(kFirst);
}

RaisedPriority::~RaisedPriority() {
  if (before_) SetForAllThreads(*before_);
}

}  // namespace collage
