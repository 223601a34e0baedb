#pragma once

#include <random>
#include <vector>

#include "bench/model_problem.h"

namespace collage {

/// Measures kernels whose true times are known: samples waver, rounds waver less, and times alone are flattered by a factor for each
/// backend. It is over when somebody says so.
class SimulatedKernels : public Measurer {
 public:
  SimulatedKernels(const ModelProblem& model, uint64_t seed, std::function<bool()> is_over);

  /// What is known before anything is measured: conversions alone.
  std::vector<Evidence> FirstEvidence();

  Result<Found> MeasureAlone(size_t kernel) override;
  Result<Found> MeasureInProgram(const std::vector<SearchChoice>& cover) override;
  [[nodiscard]] bool IsOver() const override { return is_over_(); }

 private:
  Evidence Alone(size_t kernel);
  double Wavering(double deviation);

  const ModelProblem& model_;
  std::mt19937_64 random_;
  std::function<bool()> is_over_;
  std::vector<double> flattery_;  // by backend, as a logarithm
  uint64_t rounds_ = 0;
};

}  // namespace collage
