#include <utility>

#include "collage/backend/dnnl/attributes.h"
#include "collage/backend/dnnl/implementations.h"
#include "collage/backend/dnnl/layouts.h"
#include "collage/backend/dnnl/plan.h"

namespace collage::dnnl_backend {
namespace {

using dnnl::memory;

// Rows times a matrix: [rows, depth] x [depth, columns]. The strides are those of the given matrix.
struct Problem {
  int64_t rows, depth, columns;
  int64_t depth_stride, column_stride;
};

Problem ProblemOf(const Chain& chain) {
  const OpSequence::Step& step = *chain.base;
  const Shape& matrix = chain.ShapeOf(step.inputs[1]);
  // nn.dense keeps its matrix as [columns, depth]; nn.matmul says.
  const bool depth_last = step.op->name == "nn.dense" || step.attributes.Bool("transpose_b", false).value_or(false);
  const int64_t depth = matrix[depth_last ? 1 : 0];
  const int64_t columns = matrix[depth_last ? 0 : 1];
  return {ElementCount(chain.ShapeOf(step.inputs[0])) / depth, depth, columns, depth_last ? 1 : columns, depth_last ? depth : 1};
}

memory::desc DataOf(const Chain& chain, const Problem& problem) {
  return Describe({problem.rows, problem.depth}, kPlain, chain.DataType());
}

memory::desc ResultOf(const Chain& chain, const Problem& problem) {
  return Describe({problem.rows, problem.columns}, kPlain, chain.ResultType());
}

Plan MakePlan(const Chain& chain, const char* algorithm, const dnnl::primitive_desc_base& primitive, const memory::desc& bias,
              const memory::desc& given_weight, const Attached& attached, const Problem& problem) {
  Plan plan{std::string(algorithm) + "/" + ImplementationOf(primitive), primitive, attached.arguments, attached.accumulated};
  plan.arguments.push_back({DNNL_ARG_SRC, chain.DataValue(), DataOf(chain, problem), PlainLayout(chain.stored)});
  const memory::desc weight = primitive.query_md(dnnl::query::weights_md, 0);
  for (Argument& argument : ConstantArguments(chain, weight, bias, given_weight)) plan.arguments.push_back(std::move(argument));
  plan.arguments.push_back({DNNL_ARG_DST, chain.ResultValue(), ResultOf(chain, problem), PlainLayout(chain.stored_result)});
  return plan;
}

std::optional<Found> InnerProduct(const Chain& chain, const Problem& problem, const Attached& attached) {
  using Descriptor = dnnl::inner_product_forward::primitive_desc;
  const memory::dims dims = {problem.columns, problem.depth};
  const memory::desc bias = chain.bias ? Describe({problem.columns}, kPlain) : memory::desc();
  const Descriptor primitive = OrEmpty<Descriptor>([&] {
    const dnnl::inner_product_forward::desc desc(dnnl::prop_kind::forward_inference, DataOf(chain, problem),
                                                 Describe(dims, kAny, chain.WeightType()), bias, ResultOf(chain, problem));
    return Descriptor(desc, attached.attributes, Engine(), /*allow_empty=*/true);
  });
  if (!primitive.get(/*allow_empty=*/true)) return std::nullopt;
  const memory::desc given(dims, DataTypeOf(chain.GivenWeightType()), {problem.column_stride, problem.depth_stride});
  return Found{MakePlan(chain, "inner_product", primitive, bias, given, attached, problem), ImplementationOf(primitive), kPlain};
}

std::optional<Found> Matmul(const Chain& chain, const Problem& problem, const Attached& attached) {
  using Descriptor = dnnl::matmul::primitive_desc;
  const memory::dims dims = {problem.depth, problem.columns};
  const memory::dims strides = {problem.depth_stride, problem.column_stride};
  const memory::desc given(dims, DataTypeOf(chain.GivenWeightType()), strides);
  const bool packed = chain.IsConstant(chain.base->inputs[1]);
  const memory::desc weight =
      packed ? Describe(dims, kAny, chain.WeightType()) : memory::desc(dims, DataTypeOf(chain.WeightType()), strides);
  const memory::desc bias = chain.bias ? Describe({1, problem.columns}, kPlain) : memory::desc();
  const Descriptor primitive = OrEmpty<Descriptor>([&] {
    const dnnl::matmul::desc desc(DataOf(chain, problem), weight, bias, ResultOf(chain, problem));
    return Descriptor(desc, attached.attributes, Engine(), /*allow_empty=*/true);
  });
  if (!primitive.get(/*allow_empty=*/true)) return std::nullopt;
  return Found{MakePlan(chain, "matmul", primitive, bias, given, attached, problem), ImplementationOf(primitive), kPlain};
}

}  // namespace

std::vector<Plan> DensePlans(const Chain& chain) {
  if (chain.ShapeOf(chain.base->inputs[1]).size() != 2 || chain.ShapeOf(chain.result).empty()) return {};
  const Problem problem = ProblemOf(chain);
  const std::optional<Attached> attached = AttachPostOps(chain, FlattenedRows(chain.ShapeOf(chain.result)), kPlain, /*allow_sum=*/true);
  if (!attached) return {};
  std::vector<Found> found;
  if (chain.IsConstant(chain.base->inputs[1])) {
    if (std::optional<Found> one = InnerProduct(chain, problem, *attached)) found.push_back(std::move(*one));
  }
  if (std::optional<Found> one = Matmul(chain, problem, *attached)) found.push_back(std::move(*one));
  // The two primitives differ in how they cut the work, so both are offered whatever code they run.
  std::vector<Plan> plans;
  for (Found& one : found) plans.push_back(std::move(one.plan));
  return plans;
}

}  // namespace collage::dnnl_backend
