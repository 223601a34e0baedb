#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "collage/runtime/execution_plan.h"

namespace collage {

/// An execution plan with its constants laid out and its buffers at their addresses. Who owns it chooses the memory: a model's executable
/// an arena of its own, a kernel that is made of kernels the workspace that it is given. Run allocates nothing.
class PlanRunner {
 public:
  /// Constants are brought into the layouts in which they are wanted. `plan` was made of `program`.
  PlanRunner(ExecutionPlan plan, const Program& program, int threads);
  /// Of the same plan and the same constants, for another thread; its memory has to be placed. `other` may be running.
  PlanRunner(const PlanRunner& other);
  PlanRunner(PlanRunner&&) noexcept = default;
  PlanRunner& operator=(PlanRunner&&) noexcept = default;
  PlanRunner& operator=(const PlanRunner&) = delete;
  ~PlanRunner() = default;

  [[nodiscard]] const ExecutionPlan& plan() const { return *plan_; }
  /// Of intermediate tensors and the one workspace of all kernels, bytes; a multiple of kBufferAlignment where both are needed.
  [[nodiscard]] size_t memory_bytes() const { return workspace_offset_ + plan_->arenas[0].workspace_bytes; }

  /// memory_bytes(), 64-byte aligned.
  void PlaceMemory(std::byte* memory);
  /// Allocates on all devices but the host, and brings constants there. Errors say by how much a device's memory is exceeded.
  Status PlaceOnDevices();
  /// One pointer for each endpoint, 64-byte aligned.
  void Bind(std::span<const void* const> inputs, std::span<void* const> outputs);
  /// `kernel` is that of a step that calls one, and is not looked at otherwise. Errors are the kernel's own.
  Status RunStep(const ExecutionPlan::Step& step, Kernel* kernel);
  /// The same in two: what a step does, which may be recorded, and noting where it is in its device's stream.
  Status DoStep(const ExecutionPlan::Step& step, Kernel* kernel);
  void NotePlace(const ExecutionPlan::Step& step);
  /// Until all that was given to the streams has run, the errors of that being nobody's: after a step that failed.
  void Drain();

 private:
  PlanRunner(std::shared_ptr<const ExecutionPlan> plan, std::shared_ptr<const std::vector<Tensor>> constants);
  void PlaceConstants();
  void PlaceArena(size_t device, std::byte* memory);
  Status RunKernel(const ExecutionPlan::Step& step, Kernel& kernel);
  /// A copy or a conversion in one memory.
  Status RunWithin(const ExecutionPlan::Step& step);
  Status RunTransfer(const ExecutionPlan::Step& step);

  std::shared_ptr<const ExecutionPlan> plan_;
  std::shared_ptr<const std::vector<Tensor>> constants_;  // one a ConstantUse
  std::vector<std::shared_ptr<DeviceMemory>> device_memory_;
  std::vector<uint64_t> places_;  // in their streams, one a place of the plan
  size_t workspace_offset_ = 0;
  std::vector<std::byte*> workspaces_;       // one a device
  std::vector<std::byte*> pointers_;         // one a buffer
  std::vector<const void*> input_pointers_;  // of the step that runs
  std::vector<void*> output_pointers_;       // likewise
};

}  // namespace collage
