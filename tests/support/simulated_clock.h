#pragma once

#include "collage/support/clock.h"

namespace collage {

/// While it lives, time passes only where a test says so, and a microsecond at every look at the clock, so that who waits for a
/// moment does not wait for ever. One at a time.
class SimulatedClock {
 public:
  SimulatedClock() { Clock::SetSource(&Look); }
  ~SimulatedClock() { Clock::SetSource(nullptr); }
  SimulatedClock(const SimulatedClock&) = delete;
  SimulatedClock& operator=(const SimulatedClock&) = delete;

  static void Pass(double seconds) { Now() = Clock::After(seconds); }

 private:
  static Clock::time_point& Now() {
    static Clock::time_point now;
    return now;
  }
  static Clock::time_point Look() { return Now() += std::chrono::microseconds(1); }
};

}  // namespace collage
