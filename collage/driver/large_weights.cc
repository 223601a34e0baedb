#include "collage/driver/large_weights.h"

#include <unordered_set>
#include <vector>

#include "collage/ir/visit.h"
#include "collage/onnx/original.h"
#include "collage/support/backed_memory.h"
#include "collage/support/log.h"

namespace collage {
namespace {

// Libraries and compilers take about as much without any weights.
constexpr size_t kLarge = size_t{128} << 20;

/// Each once.
std::vector<Tensor> WeightsOf(const IRModule& module) {
  std::vector<Tensor> weights;
  std::unordered_set<const std::byte*> seen;
  PostOrder(module.MainExpr(), [&](const Expr& expr) {
    const Constant* constant = expr->As<Constant>();
    if (constant && seen.insert(constant->value.Bytes()).second) weights.push_back(constant->value);
  });
  return weights;
}

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
  std::vector<Tensor> weights = WeightsOf(module);
  size_t bytes = 0;
  for (const Tensor& weight : weights) bytes += weight.ByteCount();
  if (bytes < kLarge) return;
  // Two programs, and a quarter for what is made at the moment. The rest is what compilers and heaps take beside.
  cache.most_weights = bytes / 4 * 9;
  if (model.original) weights.insert(weights.end(), model.original->weights.begin(), model.original->weights.end());
  const Status moved = MoveToFile(weights, FolderOf(output));
  if (!moved) spdlog::info("weights stay in memory: {}", moved.error().message);
}

}  // namespace collage
