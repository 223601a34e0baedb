#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collage/driver/placement.h"
#include "collage/ir/module.h"
#include "collage/op/reference_sample.h"

namespace collage {

/// The cheapest plan, where another one was taken that cannot be told from it.
struct PlanTie {
  double within;      ///< share of its cost
  size_t partitions;  ///< of the cheapest
  Cost cost;
};

/// A kernel of a plan, as whoever runs, watches or reports the plan needs to know it.
struct PlanKernel {
  size_t choice;       ///< position among the plan's choices
  size_t kernel;       ///< of the placement
  std::string symbol;  ///< global_symbol of its partition
};

/// A cover of a placement with its kernels' identities. It holds for the placement that it was made of and for all extensions of that.
struct Plan {
  std::string name;
  SearchResult result;
  std::vector<PlanKernel> kernels = {};
  bool is_single_backend = false;
  std::optional<PlanTie> tie = {};

  /// Then its program is that kernel, and what is found of one holds for the other.
  [[nodiscard]] bool IsOneKernel() const { return kernels.size() == 1; }
};

Plan MakePlan(const Placement& placement, std::string name, SearchResult result);

/// The forms that a cover takes, by their positions.
std::vector<size_t> FormsOf(const Placement& placement, const std::vector<SearchChoice>& choices);
/// The partitioned module of a plan: of the function with the plan's forms.
Result<IRModule> Apply(const Placement& placement, const Plan& plan);
/// A plan as text from which phase 4 runs alone (LoadPlan, ApplyCover). The plan must take no form.
std::string Save(const Placement& placement, const Plan& plan);
/// Whether some kernel of a cover uses the permitted precision.
bool UsesPrecision(const Placement& placement, const std::vector<SearchChoice>& choices);
/// How far a program of that cover may be from the reference: no farther than one of float32 where none does.
double ToleranceOf(const Placement& placement, const std::vector<SearchChoice>& choices, const ReferenceSample& sample);
/// Seconds that the search charges before each choice for the transition to its backend.
std::vector<double> TransitionsOf(const Placement& placement, const std::vector<SearchChoice>& choices);
/// Which of two plans that take equally long is taken: that of fewer partitions, or of earlier backends.
bool IsPreferred(const Placement& placement, const Plan& a, const Plan& b);

}  // namespace collage
