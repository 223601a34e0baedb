#include "collage/driver/large_weights.h"

#include <algorithm>
#include <vector>

#include "collage/ir/constant_memory.h"
#include "collage/onnx/original.h"
#include "collage/support/backed_memory.h"
#include "collage/support/log.h"

namespace collage {
namespace {

Status MoveToFile(const std::vector<Tensor>& weights, const std::filesystem::path& folder) {
  BackedMemory memory = COLLAGE_TRY(BackedMemory::Create(folder));
  for (const Tensor& weight : weights) COLLAGE_TRY_STATUS(memory.Take(weight.Bytes(), weight.ByteCount()));
  return memory.Finish();
}

std::filesystem::path FolderOf(const std::filesystem::path& output) {
  if (output.empty()) return std::filesystem::temp_directory_path();
  return output.has_parent_path() ? output.parent_path() : ".";
}

}  // namespace

void KeepWeightsInFile(const IRModule& module, const OnnxModel& model, const std::filesystem::path& output, KernelCache& cache) {
  std::vector<Tensor> weights = ConstantTensors(module.MainExpr());
  size_t bytes = 0;
  size_t largest = 0;
  for (const Tensor& weight : weights) {
    bytes += weight.ByteCount();
    largest = std::max(largest, weight.ByteCount());
  }
  if (bytes < kLargeWeights) return;
  // A comparison takes two programs, and making a kernel takes its weights once more.
  cache.most_weights = 2 * bytes + largest;
  if (model.original) weights.insert(weights.end(), model.original->weights.begin(), model.original->weights.end());
  const Status moved = MoveToFile(weights, FolderOf(output));
  if (!moved) spdlog::info("weights stay in memory: {}", moved.error().message);
}

}  // namespace collage
