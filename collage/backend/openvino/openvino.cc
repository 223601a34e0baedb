// OpenVINO's CPU plugin as a graph compiler: a region goes to it as the bytes of an ONNX model, and what it makes of it
// (layouts, fusions, algorithms) is its own affair.

#include "collage/backend/backend.h"
#include "collage/backend/openvino/integer_weights.h"
#include "collage/backend/openvino/session.h"
#include "collage/backend/openvino/supports.h"
#include "collage/ir/op_sequence.h"
#include "collage/onnx/writer.h"

namespace collage::openvino {
namespace {

std::vector<TensorType> TypesOf(const OpSequence& sequence, const std::vector<size_t>& values) {
  std::vector<TensorType> types;
  types.reserve(values.size());
  for (size_t value : values) types.push_back(sequence.values[value].type);
  return types;
}

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
    const auto sequence = ToOpSequence(function);
    if (!sequence || sequence->steps.empty()) return {};
    for (const OpSequence::Step& step : sequence->steps) {
      if (!Supports(step.call).accepted) return {};
    }
    Variant variant{"default", {}, {}};
    variant.inputs.resize(sequence->parameters.size());
    variant.outputs.resize(sequence->results.size());
    return {std::move(variant)};
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    if (variant.name != "default") return Fail("openvino: it has no variant '" + variant.name + "'");
    const OpSequence sequence = COLLAGE_TRY(ToOpSequence(function));
    const Expr written = COLLAGE_TRY(WithIntegerWeights(function));
    const std::string model = COLLAGE_TRY(WriteOnnx(*written->As<Function>()));
    return CompileModel(model, TypesOf(sequence, sequence.parameters), TypesOf(sequence, sequence.results), device);
  }
};

}  // namespace

COLLAGE_BACKEND(OpenVinoBackend)

}  // namespace collage::openvino
