#pragma once

// The compile of straight-line code, which is what a search places: a whole model, or a block of one with control flow or of rows.

#include <string>
#include <vector>

#include "collage/cache/cache.h"
#include "collage/driver/compile.h"
#include "collage/driver/placement.h"
#include "collage/onnx/reader.h"

namespace collage {

/// `model` as it came is placed too where `module` is all of it, and empty for a block. Errors name the model's nodes.
Result<CompiledModel> CompileFunction(const CompileOptions& options, MeasurementCache& cache, std::vector<PlacementTarget> targets,
                                      OnnxModel model, IRModule module, const std::string& name);
/// Decides, and neither races nor builds.
Result<PlacedFunction> PlaceByMeasuring(const CompileOptions& options, MeasurementCache& cache, std::vector<PlacementTarget> targets,
                                        const Expr& function);

}  // namespace collage
