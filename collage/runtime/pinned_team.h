#pragma once

#include <sched.h>
#include <sys/types.h>

#include <vector>

namespace collage {

/// While it lives, the threads of the process-wide OpenMP team, the calling one among them, stay on processors of their own: of those
/// that the caller may use, thread i has every `threads`-th, from the i-th on. Linux may leave two of them on one processor for seconds
/// while another process keeps the next one busy, and each barrier then takes as long as the one that has arrived first is willing to
/// spin: half a millisecond for a kernel of ten microseconds, at any priority.
///
/// For measuring only: programs that are in use share their processors with others. Threads that the calling one starts meanwhile
/// inherit its processors, so other pools must have their threads already. Does nothing for one thread, or where there are fewer
/// processors than threads.
class PinnedTeam {
 public:
  explicit PinnedTeam(int threads);
  ~PinnedTeam();
  PinnedTeam(const PinnedTeam&) = delete;
  PinnedTeam& operator=(const PinnedTeam&) = delete;

 private:
  struct Pinned {
    pid_t thread = 0;  ///< zero: left as it was
    cpu_set_t before;
  };
  std::vector<Pinned> pinned_;
};

}  // namespace collage
