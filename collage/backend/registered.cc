#include "collage/backend/registered.h"

#include "collage/backend/merged_regions.h"

namespace collage {
namespace {

class RegisteredBackend final : public Backend {
 public:
  RegisteredBackend(const Backend& backend, std::string sources) : backend_(backend), sources_(std::move(sources)) {}

  [[nodiscard]] std::string_view Name() const override { return backend_.Name(); }

  [[nodiscard]] Presence Probe(const Device& device) const override {
    Presence presence = backend_.Probe(device);
    if ((presence.present || presence.loads) && !sources_.empty()) presence.version += "+" + sources_;
    return presence;
  }

  [[nodiscard]] BackendRules Rules() const override { return backend_.Rules(); }
  [[nodiscard]] std::vector<FoundDevice> Devices() const override { return backend_.Devices(); }
  [[nodiscard]] Result<std::shared_ptr<DeviceContext>> Open(const Device& device) const override { return backend_.Open(device); }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& device) const override {
    std::vector<Variant> variants = backend_.Variants(function, device);
    // A merged kernel's workspace is host memory.
    if (!variants.empty() || device.kind != DeviceKind::kCpu) return variants;
    Result<Variant> merged = MergedVariant(backend_, function, device);
    if (merged) variants.push_back(std::move(*merged));
    return variants;
  }

  [[nodiscard]] std::vector<TuningParameter> Tuning(const Function& function, const Device& device, const Variant& variant) const override {
    if (IsMergedVariant(variant.name)) return {};
    return backend_.Tuning(function, device, variant);
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    if (IsMergedVariant(variant.name)) return CompileMerged(backend_, function, device, variant);
    return backend_.Compile(function, device, variant);
  }

  [[nodiscard]] bool ArtifactsHoldSource() const override { return backend_.ArtifactsHoldSource(); }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Load(std::string_view artifact, const Device& device) const override {
    return backend_.Load(artifact, device);
  }

 private:
  const Backend& backend_;
  std::string sources_;
};

}  // namespace

std::unique_ptr<Backend> Registered(const Backend& backend, std::string sources) {
  return std::make_unique<RegisteredBackend>(backend, std::move(sources));
}

}  // namespace collage
