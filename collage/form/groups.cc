#include <algorithm>

#include "collage/form/rules.h"
#include "collage/op/window.h"

namespace collage {
namespace {

Convolution ReadMatch(const Match& match) {
  const Call& call = *match.root->As<Call>();
  return *ReadConvolution(*call.args[0]->type().AsTensor(), *call.args[1]->type().AsTensor(), call.attributes);
}

/// How many groups become one; 1: none do.
int64_t GroupsInOne(const Convolution& convolution) {
  constexpr int64_t kFilled = 16;   // floats of the widest vectors
  constexpr int64_t kMostWork = 4;  // times the original's: what vectors of four would leave unused of one of sixteen
  const int64_t channels = std::min(convolution.input_channels, convolution.output_channels) / convolution.groups;
  int64_t merged = 1;
  while (2 * merged <= kMostWork && 2 * merged * channels <= kFilled && convolution.groups % (2 * merged) == 0) merged *= 2;
  return merged;
}

Verdict HasSmallGroups(const Match& match) {
  const Convolution convolution = ReadMatch(match);
  if (convolution.groups == 1) return Verdict::Reject("it has no groups");
  if (convolution.groups == convolution.input_channels) return Verdict::Reject("it is depthwise, which is bound by memory");
  return GroupsInOne(convolution) > 1 ? Verdict::Accept() : Verdict::Reject("its groups fill vectors");
}

Result<std::vector<Expr>> ToMerged(const std::vector<Match>& matches) {
  const Match& match = matches.front();
  const Convolution convolution = ReadMatch(match);
  const int64_t merged = GroupsInOne(convolution);
  const int64_t inputs = convolution.input_channels / convolution.groups;
  const int64_t outputs = convolution.output_channels / convolution.groups;
  const Tensor& weight = match.Find("weight")->As<Constant>()->value;
  const int64_t taps = convolution.window.kernel[0] * convolution.window.kernel[1];
  const Shape shape = {weight.shape()[0], inputs * merged, weight.shape()[2], weight.shape()[3]};
  const Tensor blocks = Rearranged(weight, shape, [&](int64_t i) {
    const int64_t input = i / taps % shape[1];
    const int64_t output = i / taps / shape[1];
    const bool is_of_group = input / inputs == output / outputs % merged;
    return is_of_group ? (output * inputs + input % inputs) * taps + i % taps : int64_t{-1};
  });
  Attributes attributes = match.root->As<Call>()->attributes;
  attributes.Set("groups", convolution.groups / merged);
  return std::vector<Expr>{COLLAGE_TRY(CallOp("nn.conv2d", {match.Find("data"), MakeConstant(blocks)}, std::move(attributes)))};
}

}  // namespace

FormRule MergedGroupsForm() {
  const Pattern pattern = pattern::CallOf("nn.conv2d", {pattern::Wildcard().As("data"), pattern::IsConstant().As("weight")});
  return {"merged_groups", pattern, HasSmallGroups, ToMerged};
}

}  // namespace collage
