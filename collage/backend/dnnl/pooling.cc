#include <utility>

#include "collage/backend/dnnl/attributes.h"
#include "collage/backend/dnnl/implementations.h"
#include "collage/backend/dnnl/layouts.h"
#include "collage/backend/dnnl/plan.h"

namespace collage::dnnl_backend {
namespace {

using dnnl::memory;
using Descriptor = dnnl::pooling_v2_forward::primitive_desc;

struct Problem {
  memory::dims data, result;
  dnnl::algorithm algorithm;
  memory::dims window, strides, dilation, padding_before, padding_after;
};

Problem GlobalPooling(const Chain& chain) {
  const Shape& data = chain.ShapeOf(chain.base->inputs[0]);
  const bool average = chain.base->op->name == "nn.global_avg_pool2d";
  return {data,
          chain.ShapeOf(chain.base->outputs[0]),
          average ? dnnl::algorithm::pooling_avg_exclude_padding : dnnl::algorithm::pooling_max,
          {data[2], data[3]},
          {1, 1},
          {0, 0},
          {0, 0},
          {0, 0}};
}

Result<std::vector<int64_t>> Pair(const Attributes& attributes, const char* name, std::vector<int64_t> fallback) {
  std::vector<int64_t> values = COLLAGE_TRY(attributes.Ints(name, std::move(fallback)));
  if (values.size() == 1) values.resize(2, values[0]);
  if (values.size() != 2) return Fail(std::string(name) + ": two extents are wanted");
  return values;
}

Result<Problem> WindowPooling(const Chain& chain) {
  const Attributes& attributes = chain.base->attributes;
  const Shape& data = chain.ShapeOf(chain.base->inputs[0]);
  const Shape& result = chain.ShapeOf(chain.base->outputs[0]);
  Problem problem{data, result, dnnl::algorithm::pooling_max};
  problem.window = COLLAGE_TRY(Pair(attributes, "pool_size", {1, 1}));
  problem.strides = COLLAGE_TRY(Pair(attributes, "strides", {1, 1}));
  problem.dilation = COLLAGE_TRY(Pair(attributes, "dilation", {1, 1}));
  std::vector<int64_t> padding = COLLAGE_TRY(attributes.Ints("padding", {0, 0, 0, 0}));
  if (padding.size() == 1) padding.resize(4, padding[0]);
  if (padding.size() == 2) padding.insert(padding.end(), {padding[0], padding[1]});
  const bool include_padding = COLLAGE_TRY(attributes.Bool("count_include_pad", false));
  if (chain.base->op->name == "nn.avg_pool2d")
    problem.algorithm = include_padding ? dnnl::algorithm::pooling_avg_include_padding : dnnl::algorithm::pooling_avg_exclude_padding;
  problem.padding_before = {padding[0], padding[1]};
  for (size_t i = 0; i < 2; ++i) {
    --problem.dilation[i];  // the library counts the gaps
    const int64_t reach = (problem.window[i] - 1) * (problem.dilation[i] + 1) + 1;
    // The library wants windows to end where the padding does: less than was given when the last column is left over, more with
    // ceil_mode.
    const int64_t after = (result[i + 2] - 1) * problem.strides[i] + reach - data[i + 2] - padding[i];
    if (after > padding[i + 2] && problem.algorithm == dnnl::algorithm::pooling_avg_include_padding)
      return Fail("oneDNN: an average that counts padding, with windows beyond the padding");
    problem.padding_after.push_back(after);
  }
  return problem;
}

Descriptor AskFor(const Problem& problem, const Chain& chain, const std::string& tag, const dnnl::primitive_attr& attributes) {
  return OrEmpty<Descriptor>([&] {
    const dnnl::pooling_v2_forward::desc desc(dnnl::prop_kind::forward_inference, problem.algorithm,
                                              Describe(problem.data, tag, chain.stored), Describe(problem.result, tag, chain.stored_result),
                                              problem.strides, problem.window, problem.dilation, problem.padding_before,
                                              problem.padding_after);
    return Descriptor(desc, attributes, Engine(), /*allow_empty=*/true);
  });
}

}  // namespace

std::vector<Plan> PoolingPlans(const Chain& chain) {
  const bool global = chain.base->op->name.starts_with("nn.global");
  if (chain.ShapeOf(chain.base->inputs[0]).size() != 4) return {};
  const Result<Problem> problem = global ? GlobalPooling(chain) : WindowPooling(chain);
  if (!problem) return {};
  std::vector<Found> found;
  for (const std::string& tag : {BlockedTag(), std::string(kChannelsLast), std::string(kPlain)}) {
    std::optional<Attached> attached = AttachPostOps(chain, AlignedTo(problem->result), tag, /*allow_sum=*/false);
    if (!attached) continue;
    const Descriptor primitive = AskFor(*problem, chain, tag, attached->attributes);
    if (!primitive.get(/*allow_empty=*/true)) continue;
    Plan plan{"pooling/" + ImplementationOf(primitive) + "/" + tag, primitive, std::move(attached->arguments)};
    plan.arguments.push_back({DNNL_ARG_SRC, chain.base->inputs[0], primitive.src_desc(), PhysicalLayout(problem->data, tag, chain.stored)});
    plan.arguments.push_back({DNNL_ARG_DST, chain.result, primitive.dst_desc(), PhysicalLayout(problem->result, tag, chain.stored_result)});
    found.push_back({std::move(plan), ImplementationOf(primitive), tag});
  }
  return WorthOffering(std::move(found), 1);
}

}  // namespace collage::dnnl_backend
