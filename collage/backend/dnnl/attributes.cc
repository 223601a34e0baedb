#include "collage/backend/dnnl/attributes.h"

#include <algorithm>

#include "collage/backend/dnnl/layouts.h"

namespace collage::dnnl_backend {
namespace {

using dnnl::memory;

bool IsBinary(const PostOp& post_op) { return post_op.operand.has_value(); }

// Accumulating overwrites the operand while the primitive still reads its other arguments, so it may be none of them.
bool IsUsedOnce(const Chain& chain, size_t value) {
  size_t uses = 0;
  for (const OpSequence::Step& step : chain.sequence->steps)
    uses += static_cast<size_t>(std::count(step.inputs.begin(), step.inputs.end(), value));
  return uses == 1;
}

bool IsWhole(const Chain& chain, const PostOp& post_op) { return chain.ShapeOf(*post_op.operand) == chain.ShapeOf(chain.result); }

bool IsSum(const Chain& chain, const PostOp& post_op) {
  return post_op.algorithm == dnnl::algorithm::binary_add && !chain.IsConstant(*post_op.operand) && IsWhole(chain, post_op) &&
         IsUsedOnce(chain, *post_op.operand);
}

Argument Operand(const Chain& chain, size_t index, const PostOp& post_op, const memory::dims& dims, const std::string& tag) {
  const std::string own_tag = IsWhole(chain, post_op) ? tag : kPlain;
  const DType stored = IsWhole(chain, post_op) ? chain.stored_result : DType::kFloat32;
  return {DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(index)) | DNNL_ARG_SRC_1, *post_op.operand, Describe(dims, own_tag, stored),
          PhysicalLayout(dims, own_tag, stored)};
}

// Sums become numbers, to which the post-operations apply.
void SetScales(const QuantisedEnds& ends, dnnl::primitive_attr& attributes) {
  constexpr int kSecondDimension = 1 << 1;  // channels of images, columns of matrices
  attributes.set_output_scales(ends.right ? 0 : kSecondDimension, ends.output_scales);
  if (ends.right && ends.right->zero_point != 0) attributes.set_zero_points(DNNL_ARG_WEIGHTS, 0, {ends.right->zero_point});
  if (ends.data.zero_point != 0) attributes.set_zero_points(DNNL_ARG_SRC, 0, {ends.data.zero_point});
}

}  // namespace

OperandView AlignedTo(const Shape& result) {
  return [rank = std::max<size_t>(result.size(), 1)](const Shape& operand) -> std::optional<memory::dims> {
    if (operand.size() > rank) return std::nullopt;
    memory::dims dims(rank, 1);
    std::copy(operand.begin(), operand.end(), dims.end() - static_cast<std::ptrdiff_t>(operand.size()));
    return dims;
  };
}

OperandView FlattenedRows(const Shape& result) {
  return [result](const Shape& operand) -> std::optional<memory::dims> {
    const int64_t columns = result.back();
    if (operand == result) return memory::dims{ElementCount(result) / columns, columns};
    if (IsChannelVector(operand, result.size(), result.size() - 1, columns)) return memory::dims{1, columns};
    if (ElementCount(operand) == 1) return memory::dims{1, 1};
    return std::nullopt;
  };
}

std::optional<Attached> AttachPostOps(const Chain& chain, const OperandView& view, const std::string& tag, bool allow_sum, size_t first) {
  Attached attached;
  dnnl::post_ops post_ops;
  for (size_t i = first; i < chain.post_ops.size(); ++i) {
    const PostOp& post_op = chain.post_ops[i];
    if (!IsBinary(post_op)) {
      post_ops.append_eltwise(1.0F, post_op.algorithm, post_op.alpha, post_op.beta);
    } else if (allow_sum && !chain.StoresIntegers() && !attached.accumulated && IsSum(chain, post_op)) {
      attached.accumulated = post_op.operand;
      post_ops.append_sum(1.0F);
    } else {
      const std::optional<memory::dims> dims = view(chain.ShapeOf(*post_op.operand));
      if (!dims || (tag == kAny && IsWhole(chain, post_op))) return std::nullopt;
      attached.arguments.push_back(Operand(chain, i - first, post_op, *dims, tag));
      post_ops.append_binary(post_op.algorithm, attached.arguments.back().desc);
    }
  }
  if (chain.quantised) SetScales(*chain.quantised, attached.attributes);
  attached.attributes.set_post_ops(post_ops);
  attached.attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attached;
}

}  // namespace collage::dnnl_backend
