#include "collage/backend/element_code/source.h"
#include "collage/backend/entry.h"
#include "collage/backend/opencl/kernel.h"

namespace collage::opencl {
namespace {

/// Generated OpenCL C, on whatever has a driver for it.
class OpenClBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "opencl"; }

  [[nodiscard]] Presence Probe(const Device& device) const override {
    // Drivers are large, so nobody opens them who does not ask for their devices.
    if (device.kind != DeviceKind::kOpenCl)
      return Presence::Absent("it runs on OpenCL devices only, which need a driver such as pocl-opencl-icd");
    for (const DeviceEntry& entry : AllDevices()) {
      if (entry.device.id != device.id) continue;
      if (!entry.reason.empty()) return Presence::Absent(entry.name + ": " + entry.reason);
      return Presence::Version(entry.version + " on " + entry.name);
    }
    return Presence::Absent("the OpenCL loader finds no such device");
  }

  [[nodiscard]] std::vector<FoundDevice> Devices() const override {
    std::vector<FoundDevice> found;
    for (const DeviceEntry& entry : AllDevices()) found.push_back({entry.device, entry.name});
    return found;
  }
  [[nodiscard]] Result<std::shared_ptr<DeviceContext>> Open(const Device& device) const override { return ContextOf(device); }

  [[nodiscard]] BackendRules Rules() const override {
    return {BackendRules::Style::kNative, {}, [](const Expr& call) { return element_code::Supports("opencl", call); }};
  }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& device) const override {
    const Result<OpSequence> sequence = ToOpSequence(function);
    if (device.kind != DeviceKind::kOpenCl || !sequence || !element_code::SupportsSequence(*sequence)) return {};
    return {{kVariant, std::vector<Layout>(sequence->parameters.size()), std::vector<Layout>(sequence->results.size())}};
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    if (variant.name != kVariant) return Fail("opencl: there is no variant '" + variant.name + "'");
    return CompileKernel(COLLAGE_TRY(ToOpSequence(function)), COLLAGE_TRY(ContextOf(device)));
  }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Load(std::string_view artifact, const Device& device) const override {
    return LoadKernel(artifact, COLLAGE_TRY(ContextOf(device)));
  }

 private:
  static constexpr const char* kVariant = "element";
};

}  // namespace
}  // namespace collage::opencl

COLLAGE_BACKEND(collage::opencl::OpenClBackend)
