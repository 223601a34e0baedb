#include "collage/backend/dnnl/layer_normalization.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "collage/backend/dnnl/chain.h"
#include "collage/backend/dnnl/implementations.h"
#include "collage/backend/dnnl/layouts.h"
#include "collage/backend/dnnl/plan.h"

namespace collage::dnnl_backend {
namespace {

using dnnl::memory;
using Step = OpSequence::Step;

// Walks from the result back to the input; every step that it passes is counted, so that nothing else may be in the function.
class Walk {
 public:
  explicit Walk(const OpSequence& sequence) : sequence_(sequence) {
    for (const Step& step : sequence.steps) {
      for (const size_t output : step.outputs) producers_[output] = &step;
    }
  }

  std::optional<LayerNormalization> Recognise() {
    LayerNormalization found{};
    found.result = sequence_.results[0];
    size_t value = found.result;
    found.shift = TakeVector("add", value);
    found.scale = TakeVector("multiply", value);
    const std::optional<Quotient> quotient = TakeQuotient(value);
    if (!quotient) return std::nullopt;
    const Step* shifted = Take(quotient->variance, "add");
    if (!shifted) return std::nullopt;
    const std::optional<double> epsilon = Scalar(shifted->inputs[1]);
    const std::optional<size_t> square = epsilon ? TakeMean(shifted->inputs[0]) : std::nullopt;
    const std::optional<size_t> deviation = square ? TakeSquare(*square) : std::nullopt;
    const std::optional<size_t> input = deviation ? TakeDeviation(*deviation) : std::nullopt;
    if (!input || TakeDeviation(quotient->deviation) != input || taken_.size() != sequence_.steps.size()) return std::nullopt;
    found.input = *input;
    found.epsilon = *epsilon;
    return found;
  }

 private:
  struct Quotient {
    size_t deviation;
    size_t variance;
  };

  const Step* Take(size_t value, std::string_view name) {
    const auto at = producers_.find(value);
    if (at == producers_.end() || at->second->op->name != name) return nullptr;
    taken_.insert(at->second);
    return at->second;
  }

  std::optional<double> Scalar(size_t value) const {
    const std::optional<Tensor>& constant = sequence_.values[value].constant;
    if (!constant || constant->ElementCount() != 1) return std::nullopt;
    return constant->ToDouble()[0];
  }

  // Passes `name(x, constant vector)` when that is what gives `value`.
  std::optional<size_t> TakeVector(std::string_view name, size_t& value) {
    const auto at = producers_.find(value);
    if (at == producers_.end() || at->second->op->name != name) return std::nullopt;
    const Step& step = *at->second;
    const Shape& shape = sequence_.values[value].type.shape;
    for (const size_t i : {0, 1}) {
      const OpSequence::Value& vector = sequence_.values[step.inputs[i]];
      if (!vector.constant || shape.empty() || !IsChannelVector(vector.type.shape, shape.size(), shape.size() - 1, shape.back())) continue;
      taken_.insert(&step);
      value = step.inputs[1 - i];
      return step.inputs[i];
    }
    return std::nullopt;
  }

  std::optional<Quotient> TakeQuotient(size_t value) {
    if (const Step* divide = Take(value, "divide")) {
      const Step* root = Take(divide->inputs[1], "sqrt");
      return root ? std::optional(Quotient{divide->inputs[0], root->inputs[0]}) : std::nullopt;
    }
    const Step* multiply = Take(value, "multiply");
    const Step* root = multiply ? Take(multiply->inputs[1], "rsqrt") : nullptr;
    return root ? std::optional(Quotient{multiply->inputs[0], root->inputs[0]}) : std::nullopt;
  }

  // The input of a mean over the last dimension that keeps it.
  std::optional<size_t> TakeMean(size_t value) {
    const Step* mean = Take(value, "mean");
    if (!mean || mean->attributes.Bool("exclude", false).value_or(true) || !mean->attributes.Bool("keepdims", false).value_or(false))
      return std::nullopt;
    const std::vector<int64_t> axis = mean->attributes.Ints("axis", {}).value_or(std::vector<int64_t>{});
    const auto rank = static_cast<int64_t>(sequence_.values[mean->inputs[0]].type.shape.size());
    if (axis.size() != 1 || (axis[0] != -1 && axis[0] != rank - 1)) return std::nullopt;
    return mean->inputs[0];
  }

  std::optional<size_t> TakeSquare(size_t value) {
    if (const Step* power = Take(value, "power")) return Scalar(power->inputs[1]) == 2.0 ? std::optional(power->inputs[0]) : std::nullopt;
    const Step* multiply = Take(value, "multiply");
    return multiply && multiply->inputs[0] == multiply->inputs[1] ? std::optional(multiply->inputs[0]) : std::nullopt;
  }

  std::optional<size_t> TakeDeviation(size_t value) {
    const Step* subtract = Take(value, "subtract");
    const std::optional<size_t> averaged = subtract ? TakeMean(subtract->inputs[1]) : std::nullopt;
    return averaged && *averaged == subtract->inputs[0] ? averaged : std::nullopt;
  }

  const OpSequence& sequence_;
  std::unordered_map<size_t, const Step*> producers_;
  std::set<const Step*> taken_;
};

std::optional<LayerNormalization> FromOperator(const OpSequence& sequence) {
  const Step& step = sequence.steps[0];
  const auto rank = static_cast<int64_t>(sequence.values[step.inputs[0]].type.shape.size());
  const int64_t axis = step.attributes.Int("axis", -1).value_or(0);
  if (sequence.steps.size() != 1 || (axis != -1 && axis != rank - 1)) return std::nullopt;
  return LayerNormalization{step.inputs[0], step.inputs[1], step.inputs[2], step.attributes.Double("epsilon", 1e-5).value_or(1e-5),
                            step.outputs[0]};
}

}  // namespace

std::optional<LayerNormalization> RecogniseLayerNormalization(const OpSequence& sequence) {
  if (sequence.steps.empty() || sequence.results.size() != 1) return std::nullopt;
  const auto is_float32 = [](const OpSequence::Value& value) { return value.type.dtype == DType::kFloat32; };
  if (!std::ranges::all_of(sequence.values, is_float32)) return std::nullopt;
  if (sequence.steps[0].op->name == "nn.layer_norm") return FromOperator(sequence);
  return Walk(sequence).Recognise();
}

std::vector<Plan> LayerNormalizationPlans(const OpSequence& sequence, const LayerNormalization& found, DType stored) {
  using Descriptor = dnnl::layer_normalization_forward::primitive_desc;
  const memory::dims dims = Dims(sequence.values[found.input].type.shape);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  auto flags = dnnl::normalization_flags::none;
  if (found.scale) flags = flags | dnnl::normalization_flags::use_scale;
  if (found.shift) flags = flags | dnnl::normalization_flags::use_shift;
  const Descriptor primitive = OrEmpty<Descriptor>([&] {
    const dnnl::layer_normalization_forward::desc desc(dnnl::prop_kind::forward_inference, Describe(dims, kPlain, stored),
                                                       static_cast<float>(found.epsilon), flags);
    return Descriptor(desc, attributes, Engine(), /*allow_empty=*/true);
  });
  if (!primitive.get(/*allow_empty=*/true)) return {};
  Plan plan{"layer_normalization/" + ImplementationOf(primitive), primitive, {}};
  plan.arguments.push_back({DNNL_ARG_SRC, found.input, primitive.src_desc(), PlainLayout(stored)});
  const memory::desc vector = Describe({dims.back()}, kPlain);
  if (found.scale) plan.arguments.push_back({DNNL_ARG_SCALE, *found.scale, vector});
  if (found.shift) plan.arguments.push_back({DNNL_ARG_SHIFT, *found.shift, vector});
  plan.arguments.push_back({DNNL_ARG_DST, found.result, primitive.dst_desc(), PlainLayout(stored)});
  return {std::move(plan)};
}

}  // namespace collage::dnnl_backend
