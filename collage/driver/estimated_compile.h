#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collage/driver/compile.h"
#include "collage/driver/plan.h"
#include "collage/onnx/reader.h"

namespace collage {

/// What an estimator's prices come to.
struct EstimatedPlan {
  PlacementPointer placement;
  std::vector<Price> prices;
  Plan plan;
  size_t estimated = 0;  ///< functions that the estimator was asked for, one for each target
};

/// Tries to make the kernels of a plan, and says which of the placement's cannot be made. Its error ends the compile.
using KernelMaker = std::function<Result<std::vector<size_t>>(const EstimatedPlan&)>;

/// Phases 1 to 3 with `options.estimator` in place of measurements: the same candidates, and the cover that `options.search` finds, joined
/// partitions of graph compilers among them. Nothing runs and nothing is timed, so the same estimator gives the same plan on any machine.
/// Where kernels are made, the cheapest plan whose kernels all can be. Errors of the estimator, or which name an operator that nothing
/// priced covers.
Result<EstimatedPlan> PlanByEstimates(const Expr& function, const std::vector<PlacementTarget>& targets, const CompileOptions& options,
                                      const KernelMaker& make = {});

/// What there is to say of it: plan, operators, bounds.
CompileReport ReportOf(const EstimatedPlan& planned, const CompileOptions& options);

/// The program of that plan, compared as a whole with the reference executor. Nothing is timed.
Result<CompiledModel> CompileByEstimates(OnnxModel model, const IRModule& module, const std::vector<PlacementTarget>& targets,
                                         const std::string& name, const CompileOptions& options);

}  // namespace collage
