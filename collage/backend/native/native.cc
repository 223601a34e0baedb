#include "collage/backend/entry.h"
#include "collage/backend/native/generated.h"
#include "collage/backend/native/generator.h"
#include "collage/backend/native/library_call.h"
#include "collage/backend/native/native_kernel.h"
#include "collage/backend/native/panel_recipe.h"
#include "collage/backend/native/panels.h"
#include "collage/backend/native/row_split.h"
#include "collage/backend/native/supports.h"
#include "collage/backend/native/variants.h"
#include "collage/ir/op_sequence.h"

namespace collage::native {
namespace {

/// Our own code generator: fused loops for what libraries lack.
class NativeBackend : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "native"; }

  [[nodiscard]] Presence Probe(const Device& device) const override {
    if (device.kind != DeviceKind::kCpu) return Presence::Absent("it generates code for CPUs only");
    return ProbeGenerator();
  }

  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules{BackendRules::Style::kNative, {}, Supports};
    rules.may_follow_call = [](const Expr& call) { return KeepsRows(call) ? Supports(call) : Verdict::Reject("it may join rows"); };
    rules.supports_calls = SupportsPanels;
    // Code is generated for what is written: each operator less is one less in a loop.
    rules.passes = {"fold_constants", "simplify_expressions", "fold_batch_norm", "eliminate_common_subexpressions", "eliminate_dead_code"};
    return rules;
  }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& device) const override {
    if (CallsLibrary(function)) return ListPanelVariants(function, device);
    const Result<OpSequence> sequence = ToOpSequence(function);
    if (!sequence || !SupportsSequence(*sequence).accepted) return {};
    return ListVariants(*sequence, device);
  }

  [[nodiscard]] std::vector<TuningParameter> Tuning(const Function& function, const Device& device, const Variant& variant) const override {
    if (CallsLibrary(function)) return {};
    const Result<OpSequence> sequence = ToOpSequence(function);
    return sequence ? ListTuning(*sequence, device, variant) : std::vector<TuningParameter>();
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    if (CallsLibrary(function)) return CompilePanels(function, device, variant);
    return CompileGenerated(function, device, variant);
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Load(std::string_view artifact, const Device& device) const override {
    if (!IsPanelArtifact(artifact)) return LoadKernel(artifact, device);
    return MakeKernel(std::make_shared<const PanelRecipe>(COLLAGE_TRY(ReadPanelArtifact(artifact))), device);
  }
};

}  // namespace
}  // namespace collage::native

COLLAGE_BACKEND(collage::native::NativeBackend)
