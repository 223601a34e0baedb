#include "collage/backend/dnnl/shuffle.h"

#include "collage/backend/dnnl/implementations.h"
#include "collage/backend/dnnl/layouts.h"
#include "collage/backend/dnnl/plan.h"

namespace collage::dnnl_backend {

std::optional<Shuffle> RecogniseShuffle(const OpSequence& sequence) {
  const std::vector<OpSequence::Step>& steps = sequence.steps;
  if (steps.size() != 3 || steps[0].op->name != "reshape" || steps[1].op->name != "transpose" || steps[2].op->name != "reshape")
    return std::nullopt;
  const size_t input = steps[0].inputs[0];
  const size_t result = steps[2].outputs[0];
  const bool is_chain = steps[1].inputs[0] == steps[0].outputs[0] && steps[2].inputs[0] == steps[1].outputs[0];
  if (!is_chain || sequence.results.size() != 1 || sequence.results[0] != result || sequence.values[input].constant) return std::nullopt;
  const TensorType& type = sequence.values[input].type;
  const Shape& split = sequence.values[steps[0].outputs[0]].type.shape;
  if (type.dtype != DType::kFloat32 || type.shape.size() != 4 || type.ElementCount() == 0 || split.size() != 5) return std::nullopt;
  const Shape wanted = {type.shape[0], split[1], type.shape[1] / std::max<int64_t>(split[1], 1), type.shape[2], type.shape[3]};
  const Result<std::vector<int64_t>> axes = steps[1].attributes.Ints("axes", {});
  if (split != wanted || !axes || *axes != std::vector<int64_t>{0, 2, 1, 3, 4} || sequence.values[result].type != type) return std::nullopt;
  return Shuffle{input, result, split[1]};
}

std::vector<Plan> ShufflePlans(const OpSequence& sequence, const Shuffle& shuffle, DType stored) {
  using Descriptor = dnnl::shuffle_forward::primitive_desc;
  const dnnl::memory::dims dims = Dims(sequence.values[shuffle.input].type.shape);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  std::vector<Plan> plans;
  for (const std::string& tag : {BlockedTag(), std::string(kChannelsLast), std::string(kPlain)}) {
    // The library counts the channels of a group where we count groups.
    const Descriptor primitive = OrEmpty<Descriptor>([&] {
      const dnnl::shuffle_forward::desc desc(dnnl::prop_kind::forward_inference, Describe(dims, tag, stored), 1,
                                             static_cast<int>(dims[1] / shuffle.groups));
      return Descriptor(desc, Engine(), attributes, /*allow_empty=*/true);
    });
    if (!primitive.get(/*allow_empty=*/true)) continue;
    Plan plan{"shuffle/" + ImplementationOf(primitive) + "/" + tag, primitive, {}};
    plan.arguments.push_back({DNNL_ARG_SRC, shuffle.input, primitive.src_desc(), PhysicalLayout(dims, tag, stored)});
    plan.arguments.push_back({DNNL_ARG_DST, shuffle.result, primitive.dst_desc(), PhysicalLayout(dims, tag, stored)});
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace collage::dnnl_backend
