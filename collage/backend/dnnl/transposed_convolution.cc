#include <utility>

#include "collage/backend/dnnl/attributes.h"
#include "collage/backend/dnnl/implementations.h"
#include "collage/backend/dnnl/layouts.h"
#include "collage/backend/dnnl/plan.h"

namespace collage::dnnl_backend {
namespace {

using dnnl::memory;
using Descriptor = dnnl::deconvolution_forward::primitive_desc;

struct Problem {
  memory::dims data, weight, result;
  memory::dims weight_strides;  // of the constant, whose outermost dimension is the input channel
  memory::dims strides, dilation, padding_before, padding_after;
};

Result<Problem> ProblemOf(const Chain& chain) {
  const OpSequence::Step& step = *chain.base;
  Problem problem{Dims(chain.ShapeOf(step.inputs[0])), {}, Dims(chain.ShapeOf(step.outputs[0]))};
  const Shape& given = chain.ShapeOf(step.inputs[1]);
  problem.strides = COLLAGE_TRY(step.attributes.Ints("strides", {1, 1}));
  problem.dilation = COLLAGE_TRY(step.attributes.Ints("dilation", {1, 1}));
  std::vector<int64_t> padding = COLLAGE_TRY(step.attributes.Ints("padding", {0, 0, 0, 0}));
  const int64_t groups = COLLAGE_TRY(step.attributes.Int("groups", 1));
  if (padding.size() == 1) padding.resize(4, padding[0]);
  if (padding.size() == 2) padding.insert(padding.end(), {padding[0], padding[1]});
  if (given.size() != 4 || padding.size() != 4 || problem.strides.size() != 2 || problem.dilation.size() != 2)
    return Fail("oneDNN: four dimensions are wanted");
  for (size_t i = 0; i < 2; ++i) {
    --problem.dilation[i];  // the library counts the gaps
    const int64_t reach = (given[i + 2] - 1) * (problem.dilation[i] + 1) + 1;
    // What the strides leave over is cut off behind; the output padding is thereby in the extents of the result.
    problem.padding_after.push_back((problem.data[i + 2] - 1) * problem.strides[i] + reach - padding[i] - problem.result[i + 2]);
  }
  problem.padding_before = {padding[0], padding[1]};
  const memory::dims s = RowMajorStrides(given);
  problem.weight = {given[1], given[0] / groups, given[2], given[3]};
  problem.weight_strides = {s[1], s[0], s[2], s[3]};
  if (groups > 1) {
    problem.weight.insert(problem.weight.begin(), groups);
    problem.weight_strides.insert(problem.weight_strides.begin(), given[0] / groups * s[0]);
  }
  return problem;
}

Descriptor AskFor(const Problem& problem, const Chain& chain, const std::string& tag, const dnnl::primitive_attr& attributes) {
  return OrEmpty<Descriptor>([&] {
    const memory::desc bias = chain.bias ? Describe({problem.result[1]}, kAny) : memory::desc();
    const dnnl::deconvolution_forward::desc desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct,
                                                 Describe(problem.data, tag, chain.stored), Describe(problem.weight, kAny, chain.stored),
                                                 bias, Describe(problem.result, tag, chain.stored_result), problem.strides,
                                                 problem.dilation, problem.padding_before, problem.padding_after);
    return Descriptor(desc, attributes, Engine(), /*allow_empty=*/true);
  });
}

std::optional<Found> TransposedConvolution(const Chain& chain, const Problem& problem, const Descriptor& primitive,
                                           const Attached& attached) {
  const std::string in = TagOf(primitive.src_desc());
  const std::string out = TagOf(primitive.dst_desc());
  if (in.empty() || out.empty()) return std::nullopt;
  const std::string layouts = in == out ? in : in + "-" + out;
  Plan plan{"direct/" + ImplementationOf(primitive) + "/" + layouts, primitive, attached.arguments, attached.accumulated};
  plan.arguments.push_back({DNNL_ARG_SRC, chain.base->inputs[0], primitive.src_desc(), PhysicalLayout(problem.data, in, chain.stored)});
  const memory::desc weight(problem.weight, memory::data_type::f32, problem.weight_strides);
  plan.arguments.push_back({DNNL_ARG_WEIGHTS, chain.base->inputs[1], primitive.weights_desc(), {}, weight});
  if (chain.bias) plan.arguments.push_back({DNNL_ARG_BIAS, *chain.bias, primitive.bias_desc()});
  plan.arguments.push_back({DNNL_ARG_DST, chain.result, primitive.dst_desc(), PhysicalLayout(problem.result, out, chain.stored_result)});
  return Found{std::move(plan), ImplementationOf(primitive), layouts};
}

}  // namespace

std::vector<Plan> TransposedConvolutionPlans(const Chain& chain) {
  const Result<Problem> problem = ProblemOf(chain);
  if (!problem || !chain.IsConstant(chain.base->inputs[1])) return {};
  std::vector<Found> found;
  for (const std::string& tag : {std::string(kAny), BlockedTag(), std::string(kChannelsLast), std::string(kPlain)}) {
    const std::optional<Attached> attached = AttachPostOps(chain, AlignedTo(chain.ShapeOf(chain.result)), tag, /*allow_sum=*/true);
    if (!attached) continue;
    const Descriptor primitive = AskFor(*problem, chain, tag, attached->attributes);
    if (!primitive.get(/*allow_empty=*/true)) continue;
    if (std::optional<Found> one = TransposedConvolution(chain, *problem, primitive, *attached)) found.push_back(std::move(*one));
  }
  return WorthOffering(std::move(found), 1);
}

}  // namespace collage::dnnl_backend
