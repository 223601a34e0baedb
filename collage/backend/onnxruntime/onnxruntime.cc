// ONNX Runtime as a graph compiler: regions go to it as the bytes of an ONNX model, a whole model also as it came.

#include "collage/backend/entry.h"
#include "collage/backend/onnx_variants.h"
#include "collage/backend/onnxruntime/api.h"
#include "collage/backend/onnxruntime/session.h"
#include "collage/backend/onnxruntime/supports.h"
#include "collage/onnx/original.h"

namespace collage::onnxruntime {
namespace {

class OnnxRuntimeBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "onnxruntime"; }

  [[nodiscard]] Presence Probe(const Device& device) const override {
    if (device.kind != DeviceKind::kCpu) return Presence::Absent("it is used for the CPU only");
    const Result<Library>& library = OpenLibrary();
    return library ? Presence::Version(library->version) : Presence::Absent(library.error().message);
  }

  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    rules.style = BackendRules::Style::kPredicate;
    rules.supports = [](const Expr& call) { return Supports(call); };
    rules.whole_regions_only = true;
    // No passes of ours: its optimizer folds constants and normalisations in every region itself.
    return rules;
  }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& device) const override {
    if (device.kind != DeviceKind::kCpu) return {};
    return OnnxVariants(function, Supports);
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    if (variant.name == kOriginalVariant)
      return MakeSession(COLLAGE_TRY(OriginalForm(function, LargeWeightsAs::kExternalData)), device, Arithmetic::kQuantised);
    if (variant.name == kRewrittenVariant)
      return MakeSession(COLLAGE_TRY(RewrittenForm(function, LargeWeightsAs::kExternalData)), device, Arithmetic::kAsWritten);
    return Fail("onnxruntime: it has no variant '" + variant.name + "'");
  }
};

}  // namespace

COLLAGE_BACKEND(OnnxRuntimeBackend)

}  // namespace collage::onnxruntime
