#pragma once

#include <filesystem>
#include <vector>

#include "collage/decide/decide.h"

namespace collage {

/// What a compile of an ONNX model for all backends that are present would decide about. Kernels and conversions truly take what a small
/// CPU takes for their work, by a seeded factor for each (function, backend, variant).
struct ModelProblem {
  Arms arms;
  std::vector<Cost> costs;    ///< by kernel, inside of programs
  std::vector<bool> allowed;  ///< by candidate: all but the fallback's for what another backend covers
};
Result<ModelProblem> ProblemOfModel(const std::filesystem::path& model, uint64_t seed);

}  // namespace collage
