#include "collage/backend/backend.h"

#include <algorithm>
#include <optional>

#include "collage/backend/entry.h"
#include "collage/backend/match_function.h"
#include "collage/backend/tuning.h"
#include "collage/backend/xsmm/attention.h"
#include "collage/backend/xsmm/fused_rule.h"
#include "collage/backend/xsmm/kernel.h"
#include "collage/backend/xsmm/recurrent_kernel.h"
#include "collage/ir/permitted_precision.h"

namespace collage {
namespace {

using xsmm::Chain;
using xsmm::Form;
using xsmm::InstructionSet;

/// libxsmm generates code for small products. Larger ones, batches of them and convolutions are cut into parts of a size that stays in
/// the nearest cache; what follows element by element is done on each tile while it is there. Recurrent layers are products in a loop,
/// attention is two of them.
class XsmmBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "xsmm"; }

  [[nodiscard]] Presence Probe(const Device& device) const override {
    if (device.kind != DeviceKind::kCpu) return Presence::Absent("libxsmm runs on the CPU only");
    const Result<InstructionSet> instructions = xsmm::DetectInstructionSet();
    return instructions ? Presence::Version(xsmm::LibraryVersion()) : Presence::Absent(instructions.error().message);
  }

  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    rules.style = BackendRules::Style::kPattern;
    rules.patterns.push_back(PatternRule::Growing("xsmm.conv2d", xsmm::FusedConvolutionsRule(), CheckMatch));
    for (const char* op : {"nn.conv2d", "nn.conv3d", "nn.dense", "nn.matmul", "nn.batch_matmul", "nn.matmul_nbits"})
      rules.patterns.push_back(WithTail(op));
    rules.patterns.push_back(PatternRule::Growing("xsmm.attention", xsmm::AttentionRule(), CheckMatch));
    for (const char* op : {"nn.lstm", "nn.gru", "nn.rnn"}) rules.patterns.push_back(Alone(op));
    // Factors behind a product are nothing in its weights.
    rules.passes = {"fold_constants", "fold_batch_norm", "eliminate_dead_code"};
    return rules;
  }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& /*device*/) const override {
    const Result<Parsed> parsed = Parse(function);
    std::vector<Variant> variants;
    if (!parsed) return variants;
    if (parsed->layer) {
      const OpSequence& sequence = *parsed->sequence;
      return {{kRecurrent, std::vector<Layout>(sequence.parameters.size()), std::vector<Layout>(sequence.results.size())}};
    }
    if (parsed->attention) return {{kAttention, std::vector<Layout>(parsed->sequence->parameters.size()), {Layout()}}};
    for (const Form& form : parsed->forms)
      variants.push_back({form.name, xsmm::InputLayouts(parsed->chain, form), {form.result}, form.rounds_weights});
    return variants;
  }

  [[nodiscard]] std::vector<TuningParameter> Tuning(const Function& function, const Device& /*device*/,
                                                    const Variant& variant) const override {
    const Result<Parsed> parsed = Parse(function);
    if (!parsed) return {};
    if (parsed->attention) return {xsmm::AttentionTuning(*parsed->attention)};
    for (const Form& form : parsed->forms) {
      if (form.name == variant.name) return {form.size};
    }
    return {};
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    const Parsed parsed = COLLAGE_TRY(Parse(function));
    if (parsed.layer && variant.name == kRecurrent) return xsmm::MakeRecurrentKernel(*parsed.layer, device.threads);
    const auto size_of = [&](const TuningParameter& size) {
      const std::map<std::string, int> tuned = TunedValues(variant.name);
      const auto at = tuned.find(size.name);
      return at == tuned.end() ? size.values[0] : at->second;
    };
    if (parsed.attention && TemplateName(variant.name) == kAttention)
      return xsmm::MakeAttentionKernel(*parsed.attention, size_of(xsmm::AttentionTuning(*parsed.attention)), device.threads);
    for (const Form& form : parsed.forms) {
      if (form.name == TemplateName(variant.name)) return xsmm::MakeKernel(parsed.chain, form, size_of(form.size), device);
    }
    return Fail("libxsmm: there is no variant '" + variant.name + "' of this function on this processor");
  }

 private:
  static constexpr const char* kRecurrent = "recurrent";
  static constexpr const char* kAttention = "attention";

  struct Parsed {
    std::unique_ptr<const OpSequence> sequence;      // what the others refer to
    std::optional<xsmm::RecurrentLayer> layer = {};  // instead of a chain
    std::optional<xsmm::Attention> attention = {};   // likewise
    Chain chain = {};
    std::vector<Form> forms = {};  // in which this processor may run it
  };
  static Result<Parsed> Parse(const Function& function) {
    auto sequence = std::make_unique<const OpSequence>(COLLAGE_TRY(ToOpSequence(function)));
    if (xsmm::IsRecurrentLayer(*sequence)) {
      xsmm::RecurrentLayer layer = COLLAGE_TRY(xsmm::ParseRecurrentLayer(*sequence));
      return Parsed{std::move(sequence), std::move(layer)};
    }
    if (xsmm::MayBeAttention(*sequence)) {
      xsmm::Attention attention = COLLAGE_TRY(xsmm::ParseAttention(*sequence));
      return Parsed{std::move(sequence), {}, std::move(attention)};
    }
    Chain chain = COLLAGE_TRY(xsmm::ParseChain(*sequence));
    chain.may_round_weights = Permits(function, DType::kInt8);
    std::vector<Form> forms = COLLAGE_TRY(xsmm::Forms(chain, COLLAGE_TRY(xsmm::DetectInstructionSet())));
    return Parsed{std::move(sequence), {}, {}, std::move(chain), std::move(forms)};
  }

  // An operator and what follows it element by element, as far as tile loops go.
  static PatternRule WithTail(const std::string& op) {
    FusionRule fusion;
    fusion.begins = [op](const Expr& call) { return CalledOp(call)->name == op; };
    fusion.joins = [](const std::vector<Expr>& inside, const Expr& next) {
      return xsmm::MayBeInTail(*CalledOp(next)) && next->type() == inside.front()->type();
    };
    return PatternRule::Growing("xsmm." + (op.starts_with("nn.") ? op.substr(3) : op), std::move(fusion), CheckMatch);
  }

  static PatternRule Alone(const std::string& op) {
    FusionRule fusion;
    fusion.begins = [op](const Expr& call) { return CalledOp(call)->name == op; };
    fusion.joins = [](const std::vector<Expr>&, const Expr&) { return false; };
    return PatternRule::Growing("xsmm." + op.substr(3), std::move(fusion), CheckMatch);
  }

  static Verdict CheckMatch(const Match& match) {
    return VerdictOn(match, [](const Function& function) -> Status {
      COLLAGE_TRY(Parse(function));
      return {};
    });
  }
};

}  // namespace
}  // namespace collage

COLLAGE_BACKEND(collage::XsmmBackend)
