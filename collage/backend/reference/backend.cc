#include <algorithm>
#include <cstring>

#include "collage/backend/entry.h"
#include "collage/ir/op_sequence.h"
#include "collage/op/updated_argument.h"

namespace collage::reference {
namespace {

/// Runs the operators' reference kernels one after the other. Of one operator alone the results are computed where they are wanted: where
/// that only updates an argument, in its memory.
class ReferenceKernel final : public Kernel {
 public:
  explicit ReferenceKernel(OpSequence sequence) : sequence_(std::move(sequence)), values_(sequence_.values.size()) {
    for (const size_t value : sequence_.parameters) inputs_.push_back({sequence_.values[value].type, Layout()});
    for (const size_t value : sequence_.results) outputs_.push_back({sequence_.values[value].type, Layout()});
    for (size_t i = 0; i < values_.size(); ++i) {
      if (sequence_.values[i].constant) values_[i] = *sequence_.values[i].constant;
    }
    is_direct_ = sequence_.steps.size() == 1 && sequence_.steps[0].outputs == sequence_.results;
    if (is_direct_) FindUpdated(sequence_.steps[0]);
    for (const OpSequence::Step& step : sequence_.steps) {
      for (const size_t output : step.outputs) {
        const TensorType& type = sequence_.values[output].type;
        values_[output] = is_direct_ ? Tensor::Borrowed(type, nullptr) : Tensor(type);
      }
    }
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* /*workspace*/) override {
    for (size_t i = 0; i < inputs.size(); ++i) values_[sequence_.parameters[i]] = Tensor::View(inputs_[i].type, inputs[i], nullptr);
    for (size_t i = 0; i < outputs.size() && is_direct_; ++i) values_[sequence_.results[i]].MoveTo(outputs[i]);
    for (const OpSequence::Step& step : sequence_.steps) RunStep(step);
    for (size_t i = 0; i < outputs.size() && !is_direct_; ++i)
      std::memcpy(outputs[i], values_[sequence_.results[i]].Bytes(), outputs_[i].type.ByteCount());
    return {};
  }

 private:
  void FindUpdated(const OpSequence::Step& step) {
    const std::optional<size_t> updated = UpdatedArgument(*step.op);
    if (!updated) return;
    const auto parameter = std::find(sequence_.parameters.begin(), sequence_.parameters.end(), step.inputs[*updated]);
    const bool is_read_once = std::count(step.inputs.begin(), step.inputs.end(), step.inputs[*updated]) == 1;
    if (parameter != sequence_.parameters.end() && is_read_once)
      accumulated_input_ = static_cast<size_t>(parameter - sequence_.parameters.begin());
  }

  void RunStep(const OpSequence::Step& step) {
    arguments_.clear();
    results_.clear();
    for (const size_t input : step.inputs) arguments_.push_back(values_[input]);
    for (const size_t output : step.outputs) results_.push_back(values_[output]);
    step.op->reference(arguments_, step.attributes, results_);
  }

  OpSequence sequence_;
  bool is_direct_ = false;
  std::vector<Tensor> values_;
  std::vector<Tensor> arguments_;  // kept, so that only the first run allocates
  std::vector<Tensor> results_;
};

/// The truth that every other backend is compared with. It runs any straight-line function and never competes.
class ReferenceBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "reference"; }

  [[nodiscard]] Presence Probe(const Device& device) const override {
    return device.kind == DeviceKind::kCpu ? Presence::Version("1") : Presence::Absent("reference kernels run on the CPU only");
  }

  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    rules.style = BackendRules::Style::kPredicate;
    // No passes either: what is written is what the truth is about.
    rules.supports = [](const Expr& call) {
      const OpDef* op = CalledOp(call);
      return op && op->reference ? Verdict::Accept() : Verdict::Reject("reference: no kernel of an operator");
    };
    return rules;
  }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& /*device*/) const override {
    const Result<OpSequence> sequence = ToOpSequence(function);
    if (!sequence || !HasKernels(*sequence)) return {};
    return {Variant{kVariant, std::vector<Layout>(sequence->parameters.size()), std::vector<Layout>(sequence->results.size())}};
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& /*device*/,
                                                        const Variant& variant) const override {
    OpSequence sequence = COLLAGE_TRY(ToOpSequence(function));
    if (variant.name != kVariant) return Fail("reference: there is no variant '" + variant.name + "'");
    if (!HasKernels(sequence)) return Fail("reference: an operator has no reference kernel");
    return std::make_unique<ReferenceKernel>(std::move(sequence));
  }

 private:
  static constexpr const char* kVariant = "plain";

  static bool HasKernels(const OpSequence& sequence) {
    return std::all_of(sequence.steps.begin(), sequence.steps.end(), [](const OpSequence::Step& step) { return bool(step.op->reference); });
  }
};

}  // namespace
}  // namespace collage::reference

COLLAGE_BACKEND(collage::reference::ReferenceBackend)
