#include "collage/backend/dnnl/layer_normalization.h"

#include <algorithm>

#include "collage/backend/dnnl/implementations.h"
#include "collage/backend/dnnl/layouts.h"
#include "collage/backend/dnnl/plan.h"
#include "collage/op/rules.h"

namespace collage::dnnl_backend {
namespace {

using dnnl::memory;

}  // namespace

std::optional<LayerNormalization> ReadLayerNormalization(const OpSequence& sequence) {
  const auto is_float32 = [](const OpSequence::Value& value) { return value.type.dtype == DType::kFloat32; };
  if (sequence.steps.size() != 1 || sequence.results.size() != 1 || !std::ranges::all_of(sequence.values, is_float32)) return std::nullopt;
  const OpSequence::Step& step = sequence.steps[0];
  const size_t rank = sequence.values[step.inputs[0]].type.shape.size();
  if (step.op->name != "nn.layer_norm" || AxisAttribute(step.attributes, "axis", -1, rank) != rank - 1) return std::nullopt;
  LayerNormalization found{step.inputs[0], {}, {}, DoubleAttribute(step.attributes, "epsilon", 1e-5), step.outputs[0]};
  if (BoolAttribute(step.attributes, "scale", true)) found.scale = step.inputs[1];
  if (BoolAttribute(step.attributes, "center", true)) found.shift = step.inputs[2];
  return found;
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
