#include <algorithm>

#include "collage/backend/dnnl/attributes.h"
#include "collage/backend/dnnl/implementations.h"
#include "collage/backend/dnnl/layouts.h"
#include "collage/backend/dnnl/plan.h"

namespace collage::dnnl_backend {
namespace {

using dnnl::memory;

std::vector<std::string> Tags(const memory::dims& dims) {
  if (dims.size() != 4) return {kPlain};
  return {kPlain, BlockedTag(), kChannelsLast};
}

std::optional<Found> Eltwise(const Chain& chain, const memory::dims& dims, const std::string& tag) {
  const PostOp& step = chain.post_ops[0];
  std::optional<Attached> attached = AttachPostOps(chain, AlignedTo(chain.ShapeOf(chain.result)), tag, /*allow_sum=*/false, 1);
  if (!attached) return std::nullopt;
  using Descriptor = dnnl::eltwise_forward::primitive_desc;
  const Descriptor primitive = OrEmpty<Descriptor>([&] {
    const dnnl::eltwise_forward::desc desc(dnnl::prop_kind::forward_inference, step.algorithm, Describe(dims, tag, chain.stored),
                                           step.alpha, step.beta);
    return Descriptor(desc, attached->attributes, Engine(), /*allow_empty=*/true);
  });
  if (!primitive.get(/*allow_empty=*/true)) return std::nullopt;
  // Generated code takes no post-operations here, and what is left, oneDNN 2.6.3's reference, takes them and leaves them out.
  if (chain.post_ops.size() > 1 && ImplementationOf(primitive).starts_with("ref")) return std::nullopt;
  Plan plan{"eltwise/" + ImplementationOf(primitive) + "/" + tag, primitive, std::move(attached->arguments)};
  plan.arguments.push_back({DNNL_ARG_SRC, chain.input, primitive.src_desc(), PhysicalLayout(dims, tag, chain.stored)});
  plan.arguments.push_back({DNNL_ARG_DST, chain.result, primitive.dst_desc(), PhysicalLayout(dims, tag, chain.stored)});
  return Found{std::move(plan), ImplementationOf(primitive), tag};
}

std::optional<Found> Binary(const Chain& chain, const memory::dims& dims, const std::string& tag) {
  const PostOp& step = chain.post_ops[0];
  const OperandView view = AlignedTo(chain.ShapeOf(chain.result));
  std::optional<Attached> attached = AttachPostOps(chain, view, tag, /*allow_sum=*/false, 1);
  const std::optional<memory::dims> operand_dims = view(chain.ShapeOf(*step.operand));
  if (!attached || !operand_dims) return std::nullopt;
  // A broadcast operand that is given stays row-major (it is small); a constant is packed as the other operand is.
  const bool whole = *operand_dims == dims;
  const std::string operand_tag = whole || chain.IsConstant(*step.operand) ? tag : kPlain;
  const DType operand_type = whole ? chain.stored : DType::kFloat32;
  using Descriptor = dnnl::binary::primitive_desc;
  const Descriptor primitive = OrEmpty<Descriptor>([&] {
    const dnnl::binary::desc desc(step.algorithm, Describe(dims, tag, chain.stored), Describe(*operand_dims, operand_tag, operand_type),
                                  Describe(dims, tag, chain.stored));
    return Descriptor(desc, attached->attributes, Engine(), /*allow_empty=*/true);
  });
  if (!primitive.get(/*allow_empty=*/true)) return std::nullopt;
  Plan plan{"binary/" + ImplementationOf(primitive) + "/" + tag, primitive, std::move(attached->arguments)};
  plan.arguments.push_back({DNNL_ARG_SRC_0, chain.input, primitive.src0_desc(), PhysicalLayout(dims, tag, chain.stored)});
  plan.arguments.push_back(
      {DNNL_ARG_SRC_1, *step.operand, primitive.src1_desc(), PhysicalLayout(*operand_dims, operand_tag, operand_type)});
  plan.arguments.push_back({DNNL_ARG_DST, chain.result, primitive.dst_desc(), PhysicalLayout(dims, tag, chain.stored)});
  return Found{std::move(plan), ImplementationOf(primitive), tag};
}

}  // namespace

std::vector<Plan> PointwisePlans(const Chain& chain) {
  if (chain.post_ops.empty() || chain.ShapeOf(chain.input) != chain.ShapeOf(chain.result)) return {};
  const memory::dims dims = Dims(chain.ShapeOf(chain.result));
  std::vector<Found> found;
  for (const std::string& tag : Tags(dims)) {
    std::optional<Found> one = chain.post_ops[0].operand ? Binary(chain, dims, tag) : Eltwise(chain, dims, tag);
    if (one) found.push_back(std::move(*one));
  }
  return WorthOffering(std::move(found), 1);
}

}  // namespace collage::dnnl_backend
