#pragma once

#include <random>
#include <vector>

#include "collage/decide/decide.h"
#include "tests/support/simulated_clock.h"

namespace collage {

/// Kernels whose true times are known, on a machine that drifts, wavers and is disturbed in bursts, under a simulated clock. Measuring sees
/// no more of them than it would see of real ones.
class SimulatedMachine : public Measurer {
 public:
  struct Nature {
    double wavering = 0.05;        ///< standard deviation of one sample, as a logarithm
    double round_wavering = 0.02;  ///< of a kernel's median from round to round
    double most_drift = 1.8;       ///< slowest over fastest
    double bursts = 0.05;          ///< share of samples that something else makes many times slower
    double flattery = 0.3;         ///< how far times alone are from times in programs, as a logarithm
    double seconds = 180;          ///< until measuring is over
    size_t at_once = 1;            ///< machines that measure kernels alone
  };

  /// One kernel for each variant of each candidate of the problem, whose costs are the true ones inside of programs.
  SimulatedMachine(SearchProblem problem, std::mt19937_64& random, const Nature& nature);

  [[nodiscard]] const Arms& arms() const { return arms_; }
  [[nodiscard]] std::vector<Evidence> NoEvidence();
  /// What a cover truly takes, and the cheapest one.
  [[nodiscard]] Cost TrueCost(const std::vector<SearchChoice>& cover) const { return PriceOfCover(true_problem_, cover); }
  [[nodiscard]] Cost Optimum() const;

  Result<Found> MeasureAlone(size_t kernel) override;
  Result<Found> MeasureEach(std::span<const size_t> kernels) override;
  Result<size_t> AtOnce() override { return nature_.at_once; }
  Result<Found> MeasureInProgram(const std::vector<SearchChoice>& cover) override;
  [[nodiscard]] bool IsOver() const override { return Clock::SecondsSince(start_) > nature_.seconds; }

  [[nodiscard]] size_t alone() const { return alone_; }
  [[nodiscard]] size_t programs() const { return programs_; }
  /// Times that somebody waited for kernels alone.
  [[nodiscard]] size_t waits() const { return waits_; }

 private:
  struct Times {
    double in_program = 0;
    double alone = 0;
    bool is_invalid = false;
  };
  [[nodiscard]] double Speed() const;
  void AddConversions(std::vector<KernelFacts>& facts);
  Row AloneRow(size_t kernel);
  double Sample(double seconds);
  double MedianOf(int samples, double seconds);

  SimulatedClock clock_;
  SearchProblem true_problem_;
  Arms arms_;
  std::vector<Times> times_;
  size_t first_conversion_ = 0;
  std::mt19937_64& random_;
  Nature nature_;
  Clock::time_point start_ = Clock::now();
  double phase_;
  std::vector<SearchChoice> anchor_;
  double anchor_seconds_ = 0;
  size_t alone_ = 0;
  size_t programs_ = 0;
  size_t waits_ = 0;
};

}  // namespace collage
