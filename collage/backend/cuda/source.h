#pragma once

#include <string>

#include "collage/backend/element_code/recipe.h"
#include "collage/ir/op_sequence.h"

namespace collage::cuda_source {

/// Threads of a block. A multiprocessor holds 1536 or 2048 threads, by its kind: with blocks of this size it can be full of either.
inline constexpr int kBlockThreads = 256;
/// Threads that run in step.
inline constexpr int kWarpThreads = 32;

/// CUDA C++ for a function that element_code supports, and what it is launched with. Where operators take rows, `lanes` threads share one:
/// 1, kWarpThreads or kBlockThreads.
struct CudaSource {
  std::string text;
  element_code::Recipe recipe;
};
Result<CudaSource> GenerateCuda(const OpSequence& sequence, int lanes);

}  // namespace collage::cuda_source
