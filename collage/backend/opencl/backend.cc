#include "collage/backend/element_code/source.h"
#include "collage/backend/entry.h"
#include "collage/backend/opencl/kernel.h"

namespace collage::opencl {
namespace {

/// Generated OpenCL C, on whatever has a driver for it.
class OpenClBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "opencl"; }

  [[nodiscard]] Presence Probe(const Device& device) const override { return ProbeDevice(device); }
  [[nodiscard]] std::vector<FoundDevice> Devices() const override { return FoundDevices(); }
  [[nodiscard]] Result<std::shared_ptr<DeviceContext>> Open(const Device& device) const override { return ContextOf(device); }

  [[nodiscard]] BackendRules Rules() const override {
    return {BackendRules::Style::kNative, {}, [](const Expr& call) { return element_code::Supports("opencl", call); }};
  }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& device) const override {
    const Result<OpSequence> sequence = ToOpSequence(function);
    if (device.kind != DeviceKind::kOpenCl || !sequence || !element_code::SupportsSequence(*sequence)) return {};
    const std::vector<Layout> inputs(sequence->parameters.size());
    const std::vector<Layout> outputs(sequence->results.size());
    std::vector<Variant> variants = {{kVariant, inputs, outputs}};
    const Result<std::shared_ptr<OpenClContext>> context = ContextOf(device);
    if (context && TakesTextures(*sequence, **context)) variants.push_back({kTextureVariant, inputs, outputs});
    return variants;
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    if (variant.name != kVariant && variant.name != kTextureVariant) return Fail("opencl: there is no variant '" + variant.name + "'");
    const ConstantScope scope = variant.name == kTextureVariant ? ConstantScope::kTexture : ConstantScope::kBuffer;
    return CompileKernel(COLLAGE_TRY(ToOpSequence(function)), scope, COLLAGE_TRY(ContextOf(device)));
  }
  [[nodiscard]] bool ArtifactsHoldSource() const override { return true; }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Load(std::string_view artifact, const Device& device) const override {
    return LoadKernel(artifact, COLLAGE_TRY(ContextOf(device)));
  }

 private:
  static constexpr const char* kVariant = "element";
  static constexpr const char* kTextureVariant = "element @texture";  // constants lie in that scope
};

}  // namespace
}  // namespace collage::opencl

COLLAGE_BACKEND(collage::opencl::OpenClBackend)
