#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collage/driver/placement.h"

namespace collage {

/// Seconds that a Primitive function takes on a target ("cpu -compiler=dnnl"), by somebody's reckoning. Unknown where he cannot say, and
/// then nothing that needs it is chosen. An error ends the compile.
using CostEstimator = std::function<Result<Cost>(const Expr& function, const std::string& target)>;

/// The prices of a placement's kernels by an estimator, in place of evidence. All variants of a function cost the same; a conversion costs
/// what moving its bytes takes at least, and transitions nothing.
class Estimates {
 public:
  explicit Estimates(CostEstimator estimator) : estimator_(std::move(estimator)) {}

  /// Prices the kernels of a placement, or those that an extension has added. Equal functions are asked for once a target.
  Status Add(const Placement& placement, const Progress& progress);
  /// For a kernel that cannot be made, whatever it was estimated to take.
  void MarkInvalid(size_t kernel) { costs_[kernel] = Cost::Invalid(); }
  [[nodiscard]] const std::vector<Cost>& costs() const { return costs_; }
  /// For reports: intervals of no width.
  [[nodiscard]] std::vector<Price> Prices() const;
  /// How many functions were asked for.
  [[nodiscard]] size_t count() const { return known_.size(); }

 private:
  CostEstimator estimator_;
  std::vector<Cost> costs_;                                 // by kernel
  std::map<std::pair<std::string, uint64_t>, Cost> known_;  // by target and function
};

}  // namespace collage
