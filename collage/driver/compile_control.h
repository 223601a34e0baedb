#pragma once

#include <functional>
#include <string>

#include "collage/cache/cache.h"
#include "collage/driver/compile.h"
#include "collage/onnx/reader.h"

namespace collage {

/// Decides one function and gives the program that won its race; saves nothing.
using CompileBlock = std::function<Result<CompiledModel>(const Expr& function, const CompileOptions& options)>;

/// Compiles a model with control flow, whose module OutlineBlocks has made: every block is decided as a function of its own, with its share
/// of the budget by the work that the reference executor does there on random inputs. The whole is compared with the reference on these
/// inputs, and timed, unless the cache knows its time. `model` gives the names of inputs and outputs. Errors name the block.
Result<CompiledModel> CompileControl(const OnnxModel& model, const IRModule& outlined, const std::string& name,
                                     const CompileOptions& options, MeasurementCache& cache, const CompileBlock& compile_block);

}  // namespace collage
