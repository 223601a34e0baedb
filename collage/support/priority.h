#pragma once

#include <sys/types.h>

#include <optional>

namespace collage {

/// While it lives, the threads of this process, and whatever threads and processes they start, go before those of others (nice value
/// -20), where the system permits that: with CAP_SYS_NICE, or a raised RLIMIT_NICE. Anywhere else it does nothing. A measurement beside
/// another busy process would mostly measure the scheduler: two threads that wait for each other at every barrier lose a time slice
/// whenever one of them does.
///
/// Where Linux groups processes by session (sched(7), autogroup), nice values count within a session only. Reach::kSession raises that of
/// the session too, which others in the same terminal feel. A process of its own puts it back, even when this one is killed.
class RaisedPriority {
 public:
  enum class Reach { kProcess, kSession };
  explicit RaisedPriority(Reach reach);
  ~RaisedPriority();
  RaisedPriority(const RaisedPriority&) = delete;
  RaisedPriority& operator=(const RaisedPriority&) = delete;

  [[nodiscard]] bool is_raised() const { return before_.has_value(); }

 private:
  void RaiseSession();

  std::optional<int> before_;  // nice value of the calling thread; nothing where raising was not permitted
  int alive_ = -1;             // while this end of the pipe is open, the guard leaves the session as it is
  pid_t guard_ = -1;
};

}  // namespace collage
