#include "collage/backend/backend.h"
#include "collage/backend/native/generator.h"
#include "collage/backend/native/native_kernel.h"
#include "collage/backend/native/supports.h"
#include "collage/backend/native/variants.h"
#include "collage/backend/tuning.h"
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
    // Code is generated for what is written: each operator less is one less in a loop.
    rules.passes = {"fold_constants", "simplify_expressions", "fold_batch_norm", "eliminate_common_subexpressions", "eliminate_dead_code"};
    return rules;
  }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& device) const override {
    const Result<OpSequence> sequence = ToOpSequence(function);
    if (!sequence || !SupportsSequence(*sequence).accepted) return {};
    return ListVariants(*sequence, device);
  }

  [[nodiscard]] std::vector<TuningParameter> Tuning(const Function& function, const Device& device, const Variant& variant) const override {
    const Result<OpSequence> sequence = ToOpSequence(function);
    return sequence ? ListTuning(*sequence, device, variant) : std::vector<TuningParameter>();
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    const OpSequence sequence = COLLAGE_TRY(ToOpSequence(function));
    if (const Verdict verdict = SupportsSequence(sequence); !verdict.accepted) return Fail("native: " + verdict.reason);
    if (!IsVariantOf(sequence, variant)) return Fail("native: variant " + variant.name + " is not one of this function");
    GeneratedCode code = COLLAGE_TRY(
        GenerateWithHalide({&sequence, device.threads, ScheduleOf(variant), TunedValues(variant.name), variant.inputs, variant.outputs}));
    KernelImage image{{}, {}, std::move(code.constants), std::move(code.object)};
    for (size_t i = 0; i < variant.inputs.size(); ++i)
      image.inputs.push_back({sequence.values[sequence.parameters[i]].type, variant.inputs[i]});
    for (size_t i = 0; i < variant.outputs.size(); ++i)
      image.outputs.push_back({sequence.values[sequence.results[i]].type, variant.outputs[i]});
    return MakeKernel(std::move(image), device);
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Load(std::string_view artifact, const Device& device) const override {
    return LoadKernel(artifact, device);
  }
};

}  // namespace
}  // namespace collage::native

COLLAGE_BACKEND(collage::native::NativeBackend)
