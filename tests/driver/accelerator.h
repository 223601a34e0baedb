#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "collage/driver/placement.h"
#include "tests/driver/timed_kernel.h"
#include "tests/runtime/fake_device.h"

namespace collage {

/// The backend of a fake accelerator (tests/runtime/fake_device.h): the reference's kernels, each as fast as the test says. Its copies take
/// simulated time too.
class Accelerator : public Backend {
 public:
  explicit Accelerator(int id = 0, double seconds = 100e-6, double seconds_of_copy = 10e-6, size_t memory_bytes = size_t{1} << 30)
      : device(std::make_shared<FakeDevice>(id, memory_bytes)), seconds_(seconds) {
    device->on_copy = [seconds_of_copy](size_t) { SimulatedClock::Pass(seconds_of_copy); };
  }
  [[nodiscard]] std::string_view Name() const override { return "accelerator"; }
  [[nodiscard]] Presence Probe(const Device& on) const override {
    return on.kind == DeviceKind::kCuda ? Presence::Version("1") : Presence::Absent("it is a test's");
  }
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    rules.style = BackendRules::Style::kPredicate;
    rules.supports = [](const Expr& call) {
      const OpDef* op = CalledOp(call);
      return op && op->reference ? Verdict::Accept() : Verdict::Reject("no kernel");
    };
    return rules;
  }
  [[nodiscard]] std::vector<FoundDevice> Devices() const override { return {{device->device(), device->name()}}; }
  [[nodiscard]] Result<std::shared_ptr<DeviceContext>> Open(const Device&) const override { return device; }
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& on) const override {
    std::vector<Variant> variants = InterpreterBackend("inner", false).Variants(function, on);
    variants.resize(1);
    return variants;
  }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& on, const Variant& variant) const override {
    std::unique_ptr<Kernel> kernel = COLLAGE_TRY(CompileTimed(function, on, variant, [seconds = seconds_] { return seconds; }));
    return std::make_unique<FakeDeviceKernel>(device, std::move(kernel));
  }
  [[nodiscard]] PlacementTarget Target() const {
    return {this, "1", Rules(), "cuda -compiler=accelerator", false, device->device(), device};
  }

  std::shared_ptr<FakeDevice> device;

 private:
  double seconds_;
};

}  // namespace collage
