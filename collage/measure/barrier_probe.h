#pragma once

#include <functional>
#include <utility>

#include "collage/support/progress.h"

namespace collage {

/// Tells whether the threads of the OpenMP team run at the same time. A host may let two processors of a virtual machine share one of its
/// own for seconds, which nothing inside the machine says; each barrier then takes as long as the thread that has arrived first spins,
/// half a millisecond and more, and kernels with barriers seem 30 times as slow as they are. An empty parallel region shows it.
class BarrierProbe {
 public:
  struct Machine {
    std::function<void()> region;  ///< an empty parallel region
    std::function<void()> pause;   ///< between two looks
  };
  /// Of a team of so many threads, which is pinned while it is looked at.
  BarrierProbe(int threads, Machine machine) : threads_(threads), machine_(std::move(machine)) {}
  /// That of this process, for the team of so many threads.
  static BarrierProbe& OfProcess(int threads);

  /// By the median time of a few regions.
  bool IsCalm();
  /// Waits until it is calm; so many seconds in all of the probe's life, and not after a deadline or a request to stop.
  void AwaitCalm(double patience, const Progress& progress = {});
  /// Measures, and again where it is not calm afterwards, as long as there is patience.
  template <class Measure>
  auto Calmly(double patience, const Measure& measure) {
    while (true) {
      AwaitCalm(patience);
      const Clock::time_point start = Clock::now();
      auto measured = measure();
      if (!HasPatience(patience) || IsCalm()) return measured;
      waited_ += Clock::SecondsSince(start);
    }
  }

  [[nodiscard]] bool HasPatience(double patience) const { return waited_ < patience; }

 private:
  int threads_;
  Machine machine_;
  double waited_ = 0;
};

}  // namespace collage
