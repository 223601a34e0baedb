#include "collage/runtime/plan_runner.h"

#include <algorithm>

#include "collage/runtime/memory_plan.h"
#include "collage/support/memory.h"

namespace collage {
namespace {

using Kind = ExecutionPlan::Step::Kind;
using Storage = ExecutionPlan::Storage;

/// The bytes of a constant in a layout; the tensor itself where they are the same.
Tensor Laid(const Tensor& constant, const Layout& layout, int threads) {
  const LayoutConversion conversion(constant.type(), Layout(), layout, threads);
  if (IsAligned(constant.Bytes()) && conversion.IsIdentity()) return constant;
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
      places_(plan_->places),
      workspace_offset_(AlignedBytes(plan_->arenas[0].bytes)),
      workspaces_(plan_->arenas.size(), nullptr),
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
    if (buffer.storage == Storage::kConstant && buffer.device == 0)
      pointers_[i] = const_cast<std::byte*>((*constants_)[buffer.index].Bytes()) + buffer.offset;
  }
}

void PlanRunner::PlaceMemory(std::byte* memory) {
  workspaces_[0] = memory + workspace_offset_;
  PlaceArena(0, memory);
}

void PlanRunner::PlaceArena(size_t device, std::byte* memory) {
  for (size_t i = 0; i < pointers_.size(); ++i) {
    const ExecutionPlan::Buffer& buffer = plan_->buffers[i];
    if (buffer.storage == Storage::kArena && buffer.device == device)
      pointers_[i] = memory + plan_->arenas[device].offsets[buffer.index] + buffer.offset;
  }
}

Status PlanRunner::PlaceOnDevices() {
  for (size_t device = 1; device < plan_->arenas.size(); ++device) {
    const ExecutionPlan::Arena& arena = plan_->arenas[device];
    const size_t workspace = AlignedBytes(arena.bytes);
    std::vector<size_t> constants;  // buffers
    size_t bytes = workspace + AlignedBytes(arena.workspace_bytes);
    std::vector<size_t> offsets;
    for (size_t i = 0; i < plan_->buffers.size(); ++i) {
      const ExecutionPlan::Buffer& buffer = plan_->buffers[i];
      if (buffer.storage != Storage::kConstant || buffer.device != device) continue;
      constants.push_back(i);
      offsets.push_back(bytes);
      bytes += AlignedBytes((*constants_)[buffer.index].ByteCount());
    }
    device_memory_.push_back(std::make_shared<DeviceMemory>(COLLAGE_TRY(DeviceMemory::Allocate(arena.context, bytes))));
    std::byte* memory = device_memory_.back()->address();
    PlaceArena(device, memory);
    workspaces_[device] = memory + workspace;
    for (size_t i = 0; i < constants.size(); ++i) {
      const Tensor& constant = (*constants_)[plan_->buffers[constants[i]].index];
      pointers_[constants[i]] = memory + offsets[i];
      COLLAGE_TRY_STATUS(arena.context->CopyIn(pointers_[constants[i]], constant.Bytes(), constant.ByteCount()));
    }
    COLLAGE_TRY_STATUS(arena.context->WaitForAll());
  }
  return {};
}

void PlanRunner::Bind(std::span<const void* const> inputs, std::span<void* const> outputs) {
  for (size_t i = 0; i < pointers_.size(); ++i) {
    const ExecutionPlan::Buffer& buffer = plan_->buffers[i];
    if (buffer.storage == Storage::kInput) {
      pointers_[i] = const_cast<std::byte*>(static_cast<const std::byte*>(inputs[buffer.index])) + buffer.offset;
    } else if (buffer.storage == Storage::kOutput) {
      pointers_[i] = static_cast<std::byte*>(outputs[buffer.index]) + buffer.offset;
    }
  }
}

Status PlanRunner::RunStep(const ExecutionPlan::Step& step, Kernel* kernel) {
  Status status = DoStep(step, kernel);
  NotePlace(step);
  return status;
}

void PlanRunner::NotePlace(const ExecutionPlan::Step& step) {
  if (step.place != ExecutionPlan::kNoPlace && step.kind != Kind::kWait) places_[step.place] = plan_->arenas[step.device].context->Record();
}

Status PlanRunner::DoStep(const ExecutionPlan::Step& step, Kernel* kernel) {
  switch (step.kind) {
    case Kind::kKernel:
      return RunKernel(step, *kernel);
    case Kind::kTransfer:
      return RunTransfer(step);
    case Kind::kWait:
      return plan_->arenas[step.device].context->Wait(places_[step.place]);
    case Kind::kCopy:
    case Kind::kConversion:
      return RunWithin(step);
  }
  return {};
}

Status PlanRunner::RunWithin(const ExecutionPlan::Step& step) {
  const std::byte* from = pointers_[step.inputs[0]];
  std::byte* to = pointers_[step.outputs[0]];
  if (from == to) return {};  // UpdatedInputs
  if (step.device == 0) {
    step.conversion->Run(from, to);
    return {};
  }
  DeviceContext& context = *plan_->arenas[step.device].context;
  return step.kind == Kind::kCopy ? context.CopyWithin(to, from, plan_->buffers[step.inputs[0]].bytes)
                                  : context.Transpose(*step.transposition, to, from);
}

Status PlanRunner::RunTransfer(const ExecutionPlan::Step& step) {
  DeviceContext& context = *plan_->arenas[step.device].context;
  const size_t bytes = plan_->buffers[step.inputs[0]].bytes;
  const bool is_in = plan_->buffers[step.inputs[0]].device == 0;
  return is_in ? context.CopyIn(pointers_[step.outputs[0]], pointers_[step.inputs[0]], bytes)
               : context.CopyOut(pointers_[step.outputs[0]], pointers_[step.inputs[0]], bytes);
}

Status PlanRunner::RunKernel(const ExecutionPlan::Step& step, Kernel& kernel) {
  for (size_t i = 0; i < step.inputs.size(); ++i) input_pointers_[i] = pointers_[step.inputs[i]];
  for (size_t i = 0; i < step.outputs.size(); ++i) output_pointers_[i] = pointers_[step.outputs[i]];
  return kernel.Run(std::span(input_pointers_.data(), step.inputs.size()), std::span(output_pointers_.data(), step.outputs.size()),
                    workspaces_[step.device]);
}

void PlanRunner::Drain() {
  for (size_t device = 1; device < plan_->arenas.size(); ++device) (void)plan_->arenas[device].context->WaitForAll();
}

}  // namespace collage
