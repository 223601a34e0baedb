#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "collage/backend/dnnl/implementations.h"
#include "collage/backend/dnnl/layouts.h"
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

bool IsMatrixProduct(std::string_view op) { return op == "nn.dense" || op == "nn.matmul" || op == "nn.batch_matmul"; }

// One tensor read twice, in two layouts, would need two ports.
bool IsConsistent(const OpSequence& sequence, const Plan& plan) {
  std::unordered_map<size_t, const Layout*> layouts;  // by value
  return std::all_of(plan.arguments.begin(), plan.arguments.end(), [&](const Argument& one) {
    return sequence.values[one.value].constant || *layouts.emplace(one.value, &one.layout).first->second == one.layout;
  });
}

std::vector<Plan> FamilyPlans(const OpSequence& sequence, DType stored, DType result) {
  if (const std::optional<LayerNormalization> normalization = ReadLayerNormalization(sequence))
    return result == stored ? LayerNormalizationPlans(sequence, *normalization, stored) : std::vector<Plan>();
  if (const std::optional<Shuffle> shuffle = RecogniseShuffle(sequence))
    return result == stored ? ShufflePlans(sequence, *shuffle, stored) : std::vector<Plan>();
  OpSequence inside;
  const bool is_quantised = IsQuantised(sequence);
  if (is_quantised && stored != DType::kFloat32) return {};
  Result<Chain> chain = is_quantised ? ParseQuantised(sequence, inside) : ParseChain(sequence);
  if (!chain) return {};
  chain->stored = stored;
  chain->stored_result = result;
  // Images are made float32 again at little cost beside a convolution, and each variant is to be measured.
  if (result != stored && (!chain->base || !IsMatrixProduct(chain->base->op->name))) return {};
  if (!chain->base) return PointwisePlans(*chain);
  for (const auto& [name, plans] : kFamilies) {
    if (chain->base->op->name == name) return plans(*chain);
  }
  return {};
}

bool IsReference(const Plan& plan) { return ImplementationOf(plan.primitive).starts_with("ref"); }

bool UsesTiles(const Plan& plan) { return plan.name.find("_amx_") != std::string::npos; }

bool IsBlocked(const Plan& plan) {
  return std::any_of(plan.arguments.begin(), plan.arguments.end(), [](const Argument& one) { return !one.layout.blocks().empty(); });
}

/// Beside tiles of AMX vectors are many times slower, and tiles want channels last.
void KeepThoseOfTiles(std::vector<Plan>& plans) {
  if (dnnl::get_effective_cpu_isa() < dnnl::cpu_isa::avx512_core_amx) return;
  std::erase_if(plans, IsBlocked);
  if (std::any_of(plans.begin(), plans.end(), UsesTiles)) std::erase_if(plans, [](const Plan& plan) { return !UsesTiles(plan); });
}

/// By what the result is stored as.
constexpr std::array<std::pair<const char*, DType>, 2> kOfBFloat16 = {{{"bf16/", DType::kBFloat16}, {"bf16-f32/", DType::kFloat32}}};

}  // namespace

std::vector<Argument> ConstantArguments(const Chain& chain, const dnnl::memory::desc& weight, const dnnl::memory::desc& bias,
                                        std::optional<dnnl::memory::desc> given_weight) {
  std::vector<Argument> arguments = {{DNNL_ARG_WEIGHTS, chain.base->inputs[1], weight, PlainLayout(chain.stored), given_weight}};
  if (chain.bias) arguments.push_back({DNNL_ARG_BIAS, *chain.bias, bias});
  if (!chain.quantised) return arguments;
  arguments[0].prepared = [axis = chain.quantised->weight_axis](const Tensor& weights) { return WholeWeights(weights, axis); };
  if (chain.bias) arguments[1].prepared = [scales = chain.quantised->sum_scales](const Tensor& given) { return BiasOfSums(given, scales); };
  return arguments;
}

std::vector<Plan> Plans(const OpSequence& sequence, DType stored) {
  std::vector<Plan> plans;
  if (stored == DType::kFloat32) plans = FamilyPlans(sequence, stored, stored);
  for (const auto& [prefix, result] : kOfBFloat16) {
    if (stored != DType::kBFloat16) break;
    for (Plan& plan : FamilyPlans(sequence, stored, result)) {
      plan.name = prefix + plan.name;
      if (!IsReference(plan)) plans.push_back(std::move(plan));
    }
  }
  if (stored == DType::kBFloat16) KeepThoseOfTiles(plans);
  std::erase_if(plans, [&](const Plan& plan) { return !IsConsistent(sequence, plan); });
  return plans;
}

}  // namespace collage::dnnl_backend
