#include <array>
#include <string_view>
#include <utility>

#include "collage/backend/dnnl/plan.h"

namespace collage::dnnl_backend {
namespace {

using Family = std::vector<Plan> (*)(const Chain&);

constexpr std::array<std::pair<std::string_view, Family>, 13> kFamilies = {{
    {"nn.conv2d", ConvolutionPlans},
    {"nn.conv2d_transpose", TransposedConvolutionPlans},
    {"nn.dense", DensePlans},
    {"nn.matmul", MatmulPlans},
    {"nn.batch_matmul", MatmulPlans},
    {"nn.max_pool2d", PoolingPlans},
    {"nn.avg_pool2d", PoolingPlans},
    {"nn.global_avg_pool2d", PoolingPlans},
    {"nn.global_max_pool2d", PoolingPlans},
    {"nn.lrn", LocalResponseNormalizationPlans},
    {"nn.softmax", SoftmaxPlans},
    {"nn.log_softmax", SoftmaxPlans},
    {"concatenate", ConcatenationPlans},
}};

// One tensor read twice, in two layouts, would need two ports.
bool IsConsistent(const OpSequence& sequence, const Plan& plan) {
  for (const Argument& a : plan.arguments) {
    for (const Argument& b : plan.arguments) {
      if (a.value == b.value && !sequence.values[a.value].constant && !(a.layout == b.layout)) return false;
    }
  }
  return true;
}

std::vector<Plan> FamilyPlans(const OpSequence& sequence) {
  if (const std::optional<LayerNormalization> normalization = RecogniseLayerNormalization(sequence))
    return LayerNormalizationPlans(sequence, *normalization);
  if (const std::optional<Shuffle> shuffle = RecogniseShuffle(sequence)) return ShufflePlans(sequence, *shuffle);
  OpSequence inside;
  const Result<Chain> chain = IsQuantised(sequence) ? ParseQuantised(sequence, inside) : ParseChain(sequence);
  if (!chain) return {};
  if (!chain->base) return PointwisePlans(*chain);
  for (const auto& [name, plans] : kFamilies) {
    if (chain->base->op->name == name) return plans(*chain);
  }
  return {};
}

}  // namespace

std::vector<Argument> ConstantArguments(const Chain& chain, const dnnl::memory::desc& weight, const dnnl::memory::desc& bias,
                                        std::optional<dnnl::memory::desc> given_weight) {
  std::vector<Argument> arguments = {{DNNL_ARG_WEIGHTS, chain.base->inputs[1], weight, {}, std::move(given_weight)}};
  if (chain.bias) arguments.push_back({DNNL_ARG_BIAS, *chain.bias, bias});
  if (!chain.quantised) return arguments;
  arguments[0].prepared = [axis = chain.quantised->weight_axis](const Tensor& weights) { return WholeWeights(weights, axis); };
  if (chain.bias) arguments[1].prepared = [scales = chain.quantised->sum_scales](const Tensor& given) { return BiasOfSums(given, scales); };
  return arguments;
}

std::vector<Plan> Plans(const OpSequence& sequence) {
  std::vector<Plan> plans = FamilyPlans(sequence);
  std::erase_if(plans, [&](const Plan& plan) { return !IsConsistent(sequence, plan); });
  return plans;
}

}  // namespace collage::dnnl_backend
