#pragma once

#include <filesystem>
#include <vector>

#include "collage/search/search.h"

namespace collage {

/// The search problem that a compile of an ONNX model for all backends that are present would have, nothing measured: kernels and
/// conversions cost what a small CPU takes for their work, by a seeded factor for each (function, backend, variant).
struct ModelProblem {
  SearchProblem problem;                    ///< all prices known
  std::vector<std::vector<Cost>> bounds;    ///< by candidate and variant: what a compile knows before it measures
  std::vector<std::vector<size_t>> prices;  ///< a number that variants share whose prices are one
};
Result<ModelProblem> ProblemOfModel(const std::filesystem::path& model, uint64_t seed);

}  // namespace collage
