#include "collage/backend/xsmm/fused_rule.h"

#include <algorithm>
#include <optional>

#include "collage/backend/xsmm/fused_program.h"
#include "collage/backend/xsmm/tail.h"
#include "collage/op/window.h"

namespace collage::xsmm {
namespace {

// An inverted residual: expand, depthwise, project. Longer chains would compute more at the edges of bands, and are more candidates.
constexpr std::ptrdiff_t kMostConvolutions = 3;

bool IsConvolution(const Expr& call) { return IsCallOf(call, "nn.conv2d"); }

bool MayBeInChain(const Expr& call) {
  const Call& convolution = *call->As<Call>();
  const TensorType* data = convolution.args[0]->type().AsTensor();
  if (!data || !convolution.args[1]->As<Constant>()) return false;
  const Result<Convolution> read = ReadConvolution(*data, *convolution.args[1]->type().AsTensor(), convolution.attributes);
  return read && FusedKindOf(*read);
}

int64_t DataCount(const Expr& convolution) { return convolution->As<Call>()->args[0]->type().AsTensor()->ElementCount(); }
int64_t ResultCount(const Expr& convolution) { return convolution->type().AsTensor()->ElementCount(); }

bool MayFollow(const std::vector<Expr>& inside, const Expr& next) {
  if (std::count_if(inside.begin(), inside.end(), IsConvolution) >= kMostConvolutions || !MayBeInChain(next)) return false;
  const int64_t smaller_end = std::min(DataCount(inside.front()), ResultCount(next));
  return std::all_of(inside.begin(), inside.end(),
                     [&](const Expr& call) { return !IsConvolution(call) || ResultCount(call) >= smaller_end; });
}

}  // namespace

FusionRule FusedConvolutionsRule() {
  FusionRule fusion;
  fusion.begins = [](const Expr& call) { return IsConvolution(call) && MayBeInChain(call); };
  fusion.joins = [](const std::vector<Expr>& inside, const Expr& next) {
    if (IsConvolution(next)) return MayFollow(inside, next);
    const Expr& last = *std::find_if(inside.rbegin(), inside.rend(), IsConvolution);
    return MayBeInTail(*CalledOp(next)) && next->type() == last->type();
  };
  // Three convolutions, each with a bias and a hard-swish written out in four operators, and a residual.
  fusion.max_operators = 20;
  fusion.ends = [](const std::vector<Expr>& inside, const std::vector<Expr>& could_join) {
    if (std::count_if(inside.begin(), inside.end(), IsConvolution) < 2) return false;
    return std::none_of(could_join.begin(), could_join.end(), [&](const Expr& next) {
      const std::vector<Expr>& args = next->As<Call>()->args;
      return !IsConvolution(next) && std::all_of(args.begin(), args.end(), [&](const Expr& argument) {
        return argument->As<Constant>() || std::find(inside.begin(), inside.end(), argument) != inside.end();
      });
    });
  };
  return fusion;
}

}  // namespace collage::xsmm
