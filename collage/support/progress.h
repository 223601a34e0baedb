#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

#include "collage/support/clock.h"

namespace collage {

/// What long work says about itself: which stage, how much of it is done, of how much (zero: not known), and on what it works.
struct ProgressEvent {
  std::string stage;
  size_t done = 0;
  size_t total = 0;
  std::string detail;
};

/// Where long work reports to, and where it asks whether it should stop. Either may be left empty.
struct Progress {
  std::function<void(const ProgressEvent&)> report;
  const std::atomic<bool>* stop_requested = nullptr;
  /// When the work should stop by itself.
  Clock::time_point deadline = Clock::time_point::max();

  void Report(const ProgressEvent& event) const {
    if (report) report(event);
  }
  [[nodiscard]] bool ShouldStop() const {
    if (stop_requested && stop_requested->load(std::memory_order_relaxed)) return true;
    return deadline != Clock::time_point::max() && Clock::now() >= deadline;
  }
};

}  // namespace collage
