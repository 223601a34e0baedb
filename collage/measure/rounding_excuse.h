#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collage/op/reference_sample.h"
#include "collage/op/rounding_effect.h"
#include "collage/tensor/agreement.h"

namespace collage {

/// A program that differs from the reference by more than the tolerance of its kernels, which are all right, and by no more than rounding
/// alone takes the reference from itself (RoundingEffect).
struct RoundingExcuse {
  Agreement program;
  Agreement rounding;

  /// Nothing where some output differs by more than that. `rounding`, of the same sample, runs as often as it takes, or until `stop` says
  /// so.
  static Result<std::optional<RoundingExcuse>> Find(std::span<const Tensor> found, const ReferenceSample& sample, RoundingEffect& rounding,
                                                    double tolerance, const std::function<bool()>& stop = {});
  /// As a verdict keeps it, the program's difference first. Nothing where the numbers are of no excuse.
  static std::optional<RoundingExcuse> From(const std::vector<double>& samples);
  [[nodiscard]] std::vector<double> Samples() const;
  /// For the report.
  [[nodiscard]] std::string Text() const;
};

}  // namespace collage
