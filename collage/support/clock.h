#pragma once

#include <chrono>

namespace collage {

/// The steady clock of everything that measures, or that stops when its time is over. Tests may put their own clock in its place, so
/// that what they show does not depend on the machine's speed.
class Clock {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  using duration = std::chrono::steady_clock::duration;
  using Source = time_point (*)();

  [[nodiscard]] static time_point now();
  /// Takes the time from `source` from now on, for all threads; from the machine again where it is null.
  static void SetSource(Source source);

  /// Seconds since `start`.
  [[nodiscard]] static double SecondsSince(time_point start) { return std::chrono::duration<double>(now() - start).count(); }
  /// The moment `seconds` after now.
  [[nodiscard]] static time_point After(double seconds) {
    return now() + std::chrono::duration_cast<duration>(std::chrono::duration<double>(seconds));
  }
};

}  // namespace collage
