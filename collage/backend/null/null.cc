// The smallest complete backend: it runs the operators that leave every element where it is, by copying memory. Not in the
// registry; the start of a new one is a copy of this folder. What each function promises is in collage/backend/backend.h, and
// the conformance suite (tests/conformance) holds every backend to it.

#include <cstring>

#include "collage/backend/entry.h"
#include "collage/ir/op_sequence.h"

namespace collage::null {
namespace {

class CopyKernel final : public Kernel {
 public:
  CopyKernel(TensorType from, TensorType to) {
    inputs_.push_back({std::move(from), Layout()});
    outputs_.push_back({std::move(to), Layout()});
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* /*workspace*/) override {
    std::memcpy(outputs[0], inputs[0], outputs_[0].type.ByteCount());
    return {};
  }
};

/// A function of one parameter whose steps are all views of it.
bool IsCopy(const OpSequence& sequence) {
  if (sequence.parameters.size() != 1 || sequence.results.size() != 1) return false;
  size_t value = sequence.parameters[0];
  for (const OpSequence::Step& step : sequence.steps) {
    if (!step.op->is_view || step.inputs[0] != value) return false;
    value = step.outputs[0];
  }
  return !sequence.steps.empty() && sequence.results[0] == value;
}

class NullBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "null"; }

  // A real backend asks its library here, and says in one line what is missing.
  [[nodiscard]] Presence Probe(const Device& device) const override {
    return device.kind == DeviceKind::kCpu ? Presence::Version("1") : Presence::Absent("it is used for the CPU only");
  }

  // An operator library states patterns. A graph compiler sets style kPredicate and `supports` instead, a code generator
  // kNative and `supports`.
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    rules.style = BackendRules::Style::kPattern;
    for (const char* op : {"copy", "reshape", "nn.batch_flatten", "squeeze", "expand_dims"}) {
      rules.patterns.push_back({std::string("null.") + op, pattern::CallOf(op, {pattern::Wildcard()}), Check});
    }
    return rules;
  }

  // One entry for each algorithm or choice of layouts that deserves a price of its own.
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& /*device*/) const override {
    const auto sequence = ToOpSequence(function);
    if (!sequence || !IsCopy(*sequence)) return {};
    return {Variant{"default", {Layout()}, {Layout()}}};
  }

  // Whatever can be done once is done here: choosing code, packing weights, sizing the workspace.
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& /*device*/,
                                                        const Variant& variant) const override {
    const OpSequence sequence = COLLAGE_TRY(ToOpSequence(function));
    if (!IsCopy(sequence) || variant.name != "default") return Fail("null: it only copies");
    return std::make_unique<CopyKernel>(sequence.values[sequence.parameters[0]].type, sequence.values[sequence.results[0]].type);
  }

 private:
  /// What the pattern alone cannot say. A refusal's reason is printed in the report.
  static Verdict Check(const Match& match) {
    const bool has_elements = match.root->type().AsTensor()->ElementCount() > 0;
    return has_elements ? Verdict::Accept() : Verdict::Reject("a tensor without elements");
  }
};

}  // namespace

COLLAGE_BACKEND(NullBackend)

}  // namespace collage::null
