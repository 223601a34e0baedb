#include <cmath>

#include "collage/backend/dnnl/implementations.h"
#include "collage/backend/dnnl/layouts.h"
#include "collage/backend/dnnl/plan.h"

namespace collage::dnnl_backend {
namespace {

using dnnl::memory;

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

// Plans of a primitive with one input and one result of the same extents.
template <class Descriptor>
std::optional<Found> OneToOne(const Chain& chain, const char* family, const Descriptor& primitive, const std::string& tag) {
  if (!primitive.get(/*allow_empty=*/true)) return std::nullopt;
  const memory::dims dims = primitive.dst_desc().dims();
  Plan plan{std::string(family) + "/" + ImplementationOf(primitive) + "/" + tag, primitive, {}};
  plan.arguments.push_back({DNNL_ARG_SRC, chain.base->inputs[0], primitive.src_desc(), PhysicalLayout(dims, tag, chain.stored)});
  plan.arguments.push_back({DNNL_ARG_DST, chain.result, primitive.dst_desc(), PhysicalLayout(dims, tag, chain.stored)});
  return Found{std::move(plan), ImplementationOf(primitive), tag};
}

template <class Primitive>
std::vector<Plan> SoftmaxOf(const Chain& chain, const char* family) {
  using Descriptor = typename Primitive::primitive_desc;
  const memory::dims dims = Dims(chain.ShapeOf(chain.result));
  int64_t axis = chain.base->attributes.Int("axis", -1).value_or(-1);
  if (axis < 0) axis += static_cast<int64_t>(dims.size());
  const Descriptor primitive = OrEmpty<Descriptor>([&] {
    const typename Primitive::desc desc(dnnl::prop_kind::forward_inference, Describe(dims, kPlain, chain.stored), static_cast<int>(axis));
    return Descriptor(desc, UserScratchpad(), Engine(), /*allow_empty=*/true);
  });
  std::optional<Found> found = OneToOne(chain, family, primitive, kPlain);
  if (!found) return {};
  return {std::move(found->plan)};
}

}  // namespace

std::vector<Plan> LocalResponseNormalizationPlans(const Chain& chain) {
  using Descriptor = dnnl::lrn_forward::primitive_desc;
  const Attributes& attributes = chain.base->attributes;
  const memory::dims dims = Dims(chain.ShapeOf(chain.result));
  const Result<int64_t> size = attributes.Int("size", 5);
  const Result<double> alpha = attributes.Double("alpha", 1e-5);
  const Result<double> beta = attributes.Double("beta", 0.75);
  const Result<double> bias = attributes.Double("bias", 2);
  // The library centres its window, which an even one has no centre for.
  if (!size || !alpha || !beta || !bias || *size % 2 == 0 || dims.size() != 4 || !chain.post_ops.empty()) return {};
  if (attributes.Int("axis", 1).value_or(0) != 1) return {};
  std::vector<Found> found;
  for (const std::string& tag : {BlockedTag(), std::string(kChannelsLast), std::string(kPlain)}) {
    const Descriptor primitive = OrEmpty<Descriptor>([&] {
      const dnnl::lrn_forward::desc desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::lrn_across_channels,
                                         Describe(dims, tag, chain.stored), *size, static_cast<float>(*alpha), static_cast<float>(*beta),
                                         static_cast<float>(*bias));
      return Descriptor(desc, UserScratchpad(), Engine(), /*allow_empty=*/true);
    });
    if (std::optional<Found> one = OneToOne(chain, "lrn", primitive, tag)) found.push_back(std::move(*one));
  }
  return WorthOffering(std::move(found), 1);
}

std::vector<Plan> SoftmaxPlans(const Chain& chain) {
  if (!chain.post_ops.empty()) return {};
  if (chain.base->op->name == "nn.log_softmax") return SoftmaxOf<dnnl::logsoftmax_forward>(chain, "log_softmax");
  return SoftmaxOf<dnnl::softmax_forward>(chain, "softmax");
}

}  // namespace collage::dnnl_backend
