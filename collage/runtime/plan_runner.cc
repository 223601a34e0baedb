#include "collage/runtime/plan_runner.h"

#include <algorithm>

#include "collage/runtime/memory_plan.h"

namespace collage {
namespace {

using Kind = ExecutionPlan::Step::Kind;
using Storage = ExecutionPlan::Storage;

/// The bytes of a constant in a layout; the tensor itself where they are the same.
Tensor Laid(const Tensor& constant, const Layout& layout, int threads) {
  const LayoutConversion conversion(constant.type(), Layout(), layout, threads);
  const bool is_aligned = reinterpret_cast<uintptr_t>(constant.Bytes()) % kBufferAlignment == 0;
  if (is_aligned && conversion.IsIdentity()) return constant;
  Tensor bytes(TensorType{{static_cast<int64_t>(PhysicalByteCount(constant.type(), layout))}, DType::kUInt8});
  conversion.Run(constant.Bytes(), bytes.MutableBytes());
  return bytes;
}

std::vector<Tensor> LaidConstants(const ExecutionPlan& plan, const Program& program, int threads) {
  std::vector<Tensor> constants;
  for (const ExecutionPlan::ConstantUse& use : plan.constants) {
    constants.push_back(Laid(program.values[use.value].constant, use.layout, threads));
  }
  return constants;
}

}  // namespace

PlanRunner::PlanRunner(ExecutionPlan plan, const Program& program, int threads)
    : PlanRunner(std::make_shared<const ExecutionPlan>(std::move(plan)), nullptr) {
  constants_ = std::make_shared<const std::vector<Tensor>>(LaidConstants(*plan_, program, threads));
  PlaceConstants();
}

PlanRunner::PlanRunner(const PlanRunner& other) : PlanRunner(other.plan_, other.constants_) { PlaceConstants(); }

PlanRunner::PlanRunner(std::shared_ptr<const ExecutionPlan> plan, std::shared_ptr<const std::vector<Tensor>> constants)
    : plan_(std::move(plan)),
      constants_(std::move(constants)),
      workspace_offset_((plan_->arena_bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment),
      pointers_(plan_->buffers.size(), nullptr) {
  size_t ports = 1;
  for (const ExecutionPlan::Step& step : plan_->steps) ports = std::max({ports, step.inputs.size(), step.outputs.size()});
  input_pointers_.resize(ports);
  output_pointers_.resize(ports);
}

void PlanRunner::PlaceConstants() {
  for (size_t i = 0; i < pointers_.size(); ++i) {
    const ExecutionPlan::Buffer& buffer = plan_->buffers[i];
    // Kernels take their inputs as pointers to const.
    if (buffer.storage == Storage::kConstant) pointers_[i] = const_cast<std::byte*>((*constants_)[buffer.index].Bytes());
  }
}

void PlanRunner::PlaceMemory(std::byte* memory) {
  workspace_ = memory + workspace_offset_;
  for (size_t i = 0; i < pointers_.size(); ++i) {
    const ExecutionPlan::Buffer& buffer = plan_->buffers[i];
    if (buffer.storage == Storage::kArena) pointers_[i] = memory + plan_->arena_offsets[buffer.index];
  }
}

void PlanRunner::Bind(std::span<const void* const> inputs, std::span<void* const> outputs) {
  for (size_t i = 0; i < pointers_.size(); ++i) {
    const ExecutionPlan::Buffer& buffer = plan_->buffers[i];
    if (buffer.storage == Storage::kInput) {
      pointers_[i] = const_cast<std::byte*>(static_cast<const std::byte*>(inputs[buffer.index]));
    } else if (buffer.storage == Storage::kOutput) {
      pointers_[i] = static_cast<std::byte*>(outputs[buffer.index]);
    }
  }
}

Status PlanRunner::RunStep(const ExecutionPlan::Step& step, Kernel* kernel) {
  if (step.kind != Kind::kKernel) {
    step.conversion->Run(pointers_[step.inputs[0]], pointers_[step.outputs[0]]);
    return {};
  }
  for (size_t i = 0; i < step.inputs.size(); ++i) input_pointers_[i] = pointers_[step.inputs[i]];
  for (size_t i = 0; i < step.outputs.size(); ++i) output_pointers_[i] = pointers_[step.outputs[i]];
  return kernel->Run(std::span(input_pointers_.data(), step.inputs.size()), std::span(output_pointers_.data(), step.outputs.size()),
                     workspace_);
}

}  // namespace collage
