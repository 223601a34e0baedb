#include <algorithm>
#include <utility>

#include "collage/backend/dnnl/attributes.h"
#include "collage/backend/dnnl/implementations.h"
#include "collage/backend/dnnl/layouts.h"
#include "collage/backend/dnnl/plan.h"

namespace collage::dnnl_backend {
namespace {

using dnnl::memory;

// A row-major tensor, its last two dimensions exchanged if asked, with ones in front up to `rank`.
memory::desc Matrices(const Shape& shape, size_t rank, bool transposed) {
  memory::dims dims = shape;
  memory::dims strides = RowMajorStrides(shape);
  if (transposed) {
    std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
    std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  }
  const size_t missing = rank - shape.size();
  dims.insert(dims.begin(), missing, 1);
  strides.insert(strides.begin(), missing, ElementCount(shape));
  return {dims, memory::data_type::f32, strides};
}

}  // namespace

std::vector<Plan> MatmulPlans(const Chain& chain) {
  const OpSequence::Step& step = *chain.base;
  const Shape& a = chain.ShapeOf(step.inputs[0]);
  const Shape& b = chain.ShapeOf(step.inputs[1]);
  const Shape& result = chain.ShapeOf(chain.result);
  const bool batch = step.op->name == "nn.batch_matmul";
  const bool transpose_a = step.attributes.Bool("transpose_a", false).value_or(false);
  const bool transpose_b = step.attributes.Bool("transpose_b", batch).value_or(batch);
  if (a.size() < 2 || b.size() < 2) return {};
  if (b.size() == 2 && !transpose_a) return DensePlans(chain);
  const size_t rank = result.size();
  const std::optional<Attached> attached = AttachPostOps(chain, AlignedTo(result), kPlain, /*allow_sum=*/true);
  if (!attached || std::max(a.size(), b.size()) != rank) return {};
  const memory::desc left = Matrices(a, rank, transpose_a);
  const memory::desc right = Matrices(b, rank, transpose_b);
  const memory::desc target = Describe(Dims(result), kPlain);
  memory::dims bias_dims(rank, 1);
  bias_dims.back() = result.back();
  const memory::desc bias = chain.bias ? Describe(bias_dims, kPlain) : memory::desc();
  using Descriptor = dnnl::matmul::primitive_desc;
  const Descriptor primitive = OrEmpty<Descriptor>(
      [&] { return Descriptor(dnnl::matmul::desc(left, right, bias, target), attached->attributes, Engine(), /*allow_empty=*/true); });
  if (!primitive.get(/*allow_empty=*/true)) return {};
  Plan plan{"matmul/" + ImplementationOf(primitive), primitive, attached->arguments, attached->accumulated};
  // Constants keep their strides too: a packed form exists for two dimensions only.
  plan.arguments.push_back({DNNL_ARG_SRC, step.inputs[0], left, {}, left});
  plan.arguments.push_back({DNNL_ARG_WEIGHTS, step.inputs[1], right, {}, right});
  if (chain.bias) plan.arguments.push_back({DNNL_ARG_BIAS, *chain.bias, bias});
  plan.arguments.push_back({DNNL_ARG_DST, chain.result, target});
  return {std::move(plan)};
}

}  // namespace collage::dnnl_backend
