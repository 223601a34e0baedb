#include "collage/backend/region_kernel.h"

#include <utility>

#include "collage/runtime/plan_runner.h"

namespace collage {
namespace {

std::vector<Port> PortsOf(const Program& program, const std::vector<Endpoint>& endpoints, std::vector<Layout> layouts) {
  layouts.resize(endpoints.size());
  std::vector<Port> ports;
  for (size_t i = 0; i < endpoints.size(); ++i) ports.push_back({program.values[endpoints[i].value].type, std::move(layouts[i])});
  return ports;
}

class RegionKernel final : public Kernel {
 public:
  RegionKernel(Program program, const EndpointLayouts& layouts, const Device& device)
      : runner_(PlanExecution(program, device.threads, layouts), program, device.threads), calls_(std::move(program.calls)) {
    inputs_ = PortsOf(program, program.inputs, layouts.inputs);
    outputs_ = PortsOf(program, program.outputs, layouts.outputs);
    workspace_bytes_ = runner_.memory_bytes();
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    if (workspace != memory_) {
      runner_.PlaceMemory(static_cast<std::byte*>(workspace));
      memory_ = workspace;
    }
    runner_.Bind(inputs, outputs);
    for (const ExecutionPlan::Step& step : runner_.plan().steps) {
      const bool calls = step.kind == ExecutionPlan::Step::Kind::kKernel;
      Status status = runner_.RunStep(step, calls ? calls_[step.call].kernel.get() : nullptr);
      if (!status) return calls ? Fail(status.error().At("member '" + calls_[step.call].record.name + "'")) : status;
    }
    return {};
  }

  [[nodiscard]] std::unique_ptr<Kernel> Twin() const override {
    std::vector<Program::KernelCall> calls;
    for (const Program::KernelCall& call : calls_) {
      calls.push_back({call.record, call.kernel->Twin(), call.inputs, call.outputs});
      if (!calls.back().kernel) return nullptr;
    }
    return std::unique_ptr<Kernel>(new RegionKernel(*this, std::move(calls)));
  }

 private:
  RegionKernel(const RegionKernel& other, std::vector<Program::KernelCall> calls)
      : Kernel(other), runner_(other.runner_), calls_(std::move(calls)) {}

  PlanRunner runner_;
  std::vector<Program::KernelCall> calls_;
  void* memory_ = nullptr;  // the workspace for which addresses have been computed
};

}  // namespace

Result<std::unique_ptr<Kernel>> MakeRegionKernel(Program program, const EndpointLayouts& layouts, const Device& device) {
  COLLAGE_TRY_STATUS(CheckProgram(program));
  return std::make_unique<RegionKernel>(std::move(program), layouts, device);
}

}  // namespace collage
