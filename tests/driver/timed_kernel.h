#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "tests/lower/interpreter_backend.h"
#include "tests/support/simulated_clock.h"

namespace collage {

/// The reference's kernel, for a backend of a test.
inline Result<std::unique_ptr<Kernel>> CompileReference(const Function& function, const Device& device, const Variant& variant) {
  return InterpreterBackend("inner", false).Compile(function, device, {"plain", variant.inputs, variant.outputs});
}

/// Lets simulated time pass before each run, as much as `seconds` says at that moment.
class TimedKernel : public Kernel {
 public:
  TimedKernel(std::unique_ptr<Kernel> kernel, std::function<double()> seconds) : kernel_(std::move(kernel)), seconds_(std::move(seconds)) {
    inputs_ = kernel_->inputs();
    outputs_ = kernel_->outputs();
  }
  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    SimulatedClock::Pass(seconds_());
    return kernel_->Run(inputs, outputs, workspace);
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  std::function<double()> seconds_;
};

inline Result<std::unique_ptr<Kernel>> CompileTimed(const Function& function, const Device& device, const Variant& variant,
                                                    std::function<double()> seconds) {
  std::unique_ptr<Kernel> kernel = COLLAGE_TRY(CompileReference(function, device, variant));
  return std::make_unique<TimedKernel>(std::move(kernel), std::move(seconds));
}

}  // namespace collage
