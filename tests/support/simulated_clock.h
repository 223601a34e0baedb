#pragma once

#include <atomic>

#include "collage/support/clock.h"

namespace collage {

/// While it lives, time passes only where a test says so, and a microsecond at every look at the clock, so that who waits for a
/// moment does not wait for ever. One at a time; any thread may look.
class SimulatedClock {
 public:
  SimulatedClock() { Clock::SetSource(&Look); }
  ~SimulatedClock() { Clock::SetSource(nullptr); }
  SimulatedClock(const SimulatedClock&) = delete;
  SimulatedClock& operator=(const SimulatedClock&) = delete;

  static void Pass(double seconds) {
    Look();
    Now() += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)).count();
  }

 private:
  static std::atomic<Clock::duration::rep>& Now() {
    static std::atomic<Clock::duration::rep> now;
    return now;
  }
  static Clock::time_point Look() {
    const auto look = std::chrono::duration_cast<Clock::duration>(std::chrono::microseconds(1)).count();
    return Clock::time_point(Clock::duration(Now() += look));
  }
};

}  // namespace collage
