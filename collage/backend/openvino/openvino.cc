// OpenVINO's CPU plugin as a graph compiler: a region goes to it as the bytes of an ONNX model, a whole model also as it came, and what it
// makes of it (layouts, fusions, algorithms) is its own affair.

#include "collage/backend/entry.h"
#include "collage/backend/onnx_variants.h"
#include "collage/backend/openvino/integer_weights.h"
#include "collage/backend/openvino/session.h"
#include "collage/backend/openvino/supports.h"
#include "collage/onnx/original.h"

namespace collage::openvino {
namespace {

class OpenVinoBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "openvino"; }

  [[nodiscard]] Presence Probe(const Device& device) const override {
    if (device.kind != DeviceKind::kCpu) return Presence::Absent("it is used for the CPU only");
    const auto version = RuntimeVersion();
    return version ? Presence::Version(*version) : Presence::Absent(version.error().message);
  }

  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    rules.style = BackendRules::Style::kPredicate;
    rules.supports = [](const Expr& call) { return Supports(call); };
    // No passes of ours: its compiler folds constants and normalisations in every region itself.
    return rules;
  }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& device) const override {
    if (device.kind != DeviceKind::kCpu) return {};
    return OnnxVariants(function, Supports);
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    if (variant.name == kOriginalVariant) return CompileModel(COLLAGE_TRY(OriginalForm(function)), device);
    if (variant.name == kRewrittenVariant) {
      const Expr written = COLLAGE_TRY(WithIntegerWeights(function));
      return CompileModel(COLLAGE_TRY(RewrittenForm(*written->As<Function>())), device);
    }
    return Fail("openvino: it has no variant '" + variant.name + "'");
  }
};

}  // namespace

COLLAGE_BACKEND(OpenVinoBackend)

}  // namespace collage::openvino
