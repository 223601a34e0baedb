#include <algorithm>
#include <utility>

#include "collage/backend/dnnl/attributes.h"
#include "collage/backend/dnnl/implementations.h"
#include "collage/backend/dnnl/layouts.h"
#include "collage/backend/dnnl/plan.h"
#include "collage/backend/strided_view.h"

namespace collage::dnnl_backend {
namespace {

using dnnl::memory;

// The last two dimensions exchanged if asked, with ones in front up to `rank`.
memory::desc Matrices(StridedView view, size_t rank, bool transposed, DType stored) {
  memory::dims& dims = view.dims;
  memory::dims& strides = view.strides;
  if (transposed) {
    std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
    std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  }
  const size_t missing = rank - dims.size();
  dims.insert(dims.begin(), missing, 1);
  strides.insert(strides.begin(), missing, ElementCount(dims));
  return {dims, DataTypeOf(stored), strides};
}

struct Views {
  StridedView left, right, target;
};

std::optional<Views> ViewsOf(const Chain& chain) {
  const std::optional<StridedView> left = ViewBehind(*chain.sequence, chain.views_behind, chain.base->inputs[0]);
  const std::optional<StridedView> right = ViewBehind(*chain.sequence, chain.views_behind, chain.base->inputs[1]);
  std::optional<StridedView> target = ViewAhead(*chain.sequence, chain.views_ahead, chain.result);
  if (!left || !right || !target) return std::nullopt;
  target->value = chain.sequence->results[0];
  return Views{*left, *right, *std::move(target)};
}

// An operand of a post-operation is row-major, which a result that is stored as a view is not.
bool HasOperands(const Chain& chain) {
  return chain.bias ||
         std::any_of(chain.post_ops.begin(), chain.post_ops.end(), [](const PostOp& post_op) { return post_op.operand.has_value(); });
}

}  // namespace

std::vector<Plan> MatmulPlans(const Chain& chain) {
  const OpSequence::Step& step = *chain.base;
  const bool has_views = !chain.views_behind.empty() || !chain.views_ahead.empty();
  const std::optional<Views> views = ViewsOf(chain);
  const bool batch = step.op->name == "nn.batch_matmul";
  const bool transpose_a = step.attributes.Bool("transpose_a", false).value_or(false);
  const bool transpose_b = step.attributes.Bool("transpose_b", batch).value_or(batch);
  if (!views || (has_views && HasOperands(chain))) return {};
  const size_t left_rank = views->left.dims.size();
  const size_t right_rank = views->right.dims.size();
  if (left_rank < 2 || right_rank < 2) return {};
  const bool is_pair = chain.HasTwoMatricesOfIntegers();
  if (right_rank == 2 && !transpose_a && !has_views && !is_pair) return DensePlans(chain);
  const Shape& result = chain.ShapeOf(chain.result);
  const std::optional<Attached> attached = AttachPostOps(chain, AlignedTo(result), kPlain, /*allow_sum=*/true);
  if (!attached || std::max(left_rank, right_rank) != result.size()) return {};
  const memory::desc left = Matrices(views->left, result.size(), transpose_a, chain.DataType());
  const memory::desc right = Matrices(views->right, result.size(), transpose_b, chain.WeightType());
  const memory::desc given_left = Matrices(views->left, result.size(), transpose_a, DType::kFloat32);
  const memory::desc given_right = Matrices(views->right, result.size(), transpose_b, DType::kFloat32);
  const memory::desc target(views->target.dims, DataTypeOf(chain.ResultType()), views->target.strides);
  memory::dims bias_dims(result.size(), 1);
  bias_dims.back() = result.back();
  const memory::desc bias = chain.bias ? Describe(bias_dims, kPlain) : memory::desc();
  using Descriptor = dnnl::matmul::primitive_desc;
  const Descriptor primitive = OrEmpty<Descriptor>(
      [&] { return Descriptor(dnnl::matmul::desc(left, right, bias, target), attached->attributes, Engine(), /*allow_empty=*/true); });
  if (!primitive.get(/*allow_empty=*/true)) return {};
  // The reference loops cost far more than moving the elements would.
  if ((has_views || is_pair) && ImplementationOf(primitive).starts_with("ref")) return {};
  Plan plan{"matmul/" + ImplementationOf(primitive), primitive, attached->arguments, attached->accumulated};
  // Constants keep their strides too: a packed form exists for two dimensions only.
  plan.arguments.push_back(
      {DNNL_ARG_SRC, is_pair ? chain.quantised->data.value : views->left.value, left, PlainLayout(chain.stored), given_left});
  plan.arguments.push_back(
      {DNNL_ARG_WEIGHTS, is_pair ? chain.quantised->right->value : views->right.value, right, PlainLayout(chain.stored), given_right});
  plan.arguments.back().is_made_signed = is_pair && chain.quantised->makes_right_signed;
  if (chain.bias) plan.arguments.push_back({DNNL_ARG_BIAS, *chain.bias, bias});
  plan.arguments.push_back(
      {DNNL_ARG_DST, is_pair ? chain.quantised->result.value : views->target.value, target, PlainLayout(chain.stored_result)});
  return {std::move(plan)};
}

}  // namespace collage::dnnl_backend
