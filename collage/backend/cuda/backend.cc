#include <algorithm>
#include <array>
#include <utility>

#include "collage/backend/cuda/compiler.h"
#include "collage/backend/cuda/kernel.h"
#include "collage/backend/cuda/source.h"
#include "collage/backend/entry.h"

namespace collage::cuda_source {
namespace {

/// By how many threads a row is taken: which is faster depends on how long rows are and how many there are.
constexpr std::array<std::pair<const char*, int>, 2> kRowVariants = {{{"row by warp", kWarpThreads}, {"row by block", kBlockThreads}}};
constexpr std::pair<const char*, int> kElementVariant = {"element", 1};

std::vector<std::pair<const char*, int>> VariantsOf(const OpSequence& sequence) {
  if (element_code::HasRows(sequence)) return {kRowVariants.begin(), kRowVariants.end()};
  return {kElementVariant};
}

/// Generated CUDA C++.
class CudaBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "cuda"; }

  [[nodiscard]] Presence Probe(const Device& device) const override {
    const Presence on = cuda::ProbeDevice(device);
    if (!on.present || !Compiler().present) return on.present ? Compiler() : on;
    return Presence::Version("NVRTC " + Compiler().version + " with driver " + on.version);
  }
  [[nodiscard]] std::vector<FoundDevice> Devices() const override { return cuda::FoundDevices(); }
  [[nodiscard]] Result<std::shared_ptr<DeviceContext>> Open(const Device& device) const override { return cuda::ContextOf(device); }

  [[nodiscard]] BackendRules Rules() const override {
    return {BackendRules::Style::kNative, {}, [](const Expr& call) { return element_code::Supports("cuda", call); }};
  }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& device) const override {
    const Result<OpSequence> sequence = ToOpSequence(function);
    if (device.kind != DeviceKind::kCuda || !sequence || !element_code::SupportsSequence(*sequence)) return {};
    std::vector<Variant> variants;
    for (const auto& [name, lanes] : VariantsOf(*sequence))
      variants.push_back({name, std::vector<Layout>(sequence->parameters.size()), std::vector<Layout>(sequence->results.size())});
    return variants;
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    const OpSequence sequence = COLLAGE_TRY(ToOpSequence(function));
    for (const auto& [name, lanes] : VariantsOf(sequence)) {
      if (name == variant.name) return CompileKernel(sequence, lanes, COLLAGE_TRY(cuda::ContextOf(device)));
    }
    return Fail("cuda: there is no variant '" + variant.name + "' of this function");
  }
  [[nodiscard]] bool ArtifactsHoldSource() const override { return true; }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Load(std::string_view artifact, const Device& device) const override {
    return LoadKernel(artifact, COLLAGE_TRY(cuda::ContextOf(device)));
  }
};

}  // namespace
}  // namespace collage::cuda_source

COLLAGE_BACKEND(collage::cuda_source::CudaBackend)
