#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collage/driver/compile.h"
#include "collage/onnx/reader.h"

namespace collage {

/// Compiles one model whose shapes are all known; saves nothing.
using CompileShapes = std::function<Result<CompiledModel>(OnnxModel model, const CompileOptions& options)>;

/// Compiles a model that was read for several shapes, one after another, as one program (JoinProfiles). All share the budget: each has an
/// equal part of what is left, so what one does not need is for those behind it. Errors name the profile.
Result<CompiledModel> CompileProfiles(std::vector<OnnxModel> models, const std::string& name, const CompileOptions& options,
                                      const CompileShapes& compile);

/// Errors when two of the models take inputs of the same types.
Status CheckProfiles(const std::vector<OnnxModel>& models);

}  // namespace collage
