#pragma once

// What keeps the memory of a compile of a large model near that of two programs: its weights lie in a file without a name beside the
// program, and are there only while somebody reads them; and of the kernels that pack them, as many are there at a time as two programs
// have.

#include <filesystem>

#include "collage/ir/module.h"
#include "collage/lower/lower.h"
#include "collage/onnx/reader.h"

namespace collage {

/// Does nothing for a model of few weights (kLargeWeights). `module` and `model` are of the same one. The file is made in the folder of
/// `output`, where as much is going to be written, or where temporary files are; where it cannot be, the weights stay in memory. Limits the
/// kernels of `cache`.
void KeepWeightsInFile(const IRModule& module, const OnnxModel& model, const std::filesystem::path& output, KernelCache& cache);

}  // namespace collage
