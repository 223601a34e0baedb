#pragma once

#include <optional>

namespace collage {

/// While it lives, the threads of this process, and whatever threads and processes they start, go before those of others (nice value
/// -20), where the system permits that: with CAP_SYS_NICE, or a raised RLIMIT_NICE. Anywhere else it does nothing. A measurement beside
/// another busy process would mostly measure the scheduler: two threads that wait for each other at every barrier lose a time slice
/// whenever one of them does.
class RaisedPriority {
 public:
  RaisedPriority();
  ~RaisedPriority();
  RaisedPriority(const RaisedPriority&) = delete;
  RaisedPriority& operator=(const RaisedPriority&) = delete;

  [[nodiscard]] bool is_raised() const { return before_.has_value(); }

 private:
  std::optional<int> before_;  // nice value of the calling thread; nothing where raising was not permitted
};

}  // namespace collage
