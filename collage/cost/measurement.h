#pragma once

#include <string>
#include <vector>

namespace collage {

/// Changes whenever measuring changes, so that cached prices of an older way are not mixed with new ones.
inline constexpr int kMeasurementProtocol = 8;

/// Seconds that the clock cannot tell from nothing: no time is said to be less, so that times have ratios.
inline constexpr double kTick = 1e-9;

/// What came of timing one (function, variant), or the reason why it is Invalid.
struct Measurement {
  std::vector<double> samples;  ///< seconds
  std::string invalid_reason;
  /// Seconds of the anchor beside each sample; empty for what has none.
  std::vector<double> anchors = {};
  double compile_seconds = 0;  ///< that whoever timed it took to compile it; zero where that is not known
};

}  // namespace collage
