#include <algorithm>
#include <array>

#include "collage/form/rules.h"
#include "collage/op/window.h"

namespace collage {
namespace {

using Pair = std::array<int64_t, 2>;

Convolution ReadCall(const Expr& expr) {
  const Call& call = *expr->As<Call>();
  return *ReadConvolution(*call.args[0]->type().AsTensor(), *call.args[1]->type().AsTensor(), call.attributes);
}

Pattern ConvolutionWithConstant() {
  return pattern::CallOf("nn.conv2d", {pattern::Wildcard().As("data"), pattern::IsConstant().As("weight")});
}

const Tensor& WeightOf(const Match& match) { return match.Find("weight")->As<Constant>()->value; }

bool IsUnpadded(const Window& window) { return window.pad_begin == Pair{0, 0} && window.pad_end == Pair{0, 0}; }
bool IsPointwise(const Convolution& convolution) { return convolution.window.kernel == Pair{1, 1} && IsUnpadded(convolution.window); }

Result<Expr> Reshaped(const Expr& data, const Shape& shape) {
  return CallOp("reshape", {data}, {{"newshape", std::vector<int64_t>(shape)}});
}

Verdict IsStridedPointwise(const Match& match) {
  const Convolution convolution = ReadCall(match.root);
  if (!IsPointwise(convolution)) return Verdict::Reject("its kernel is larger than one element");
  return convolution.window.stride == Pair{1, 1} ? Verdict::Reject("it has no stride") : Verdict::Accept();
}

Result<std::vector<Expr>> ToSliced(const std::vector<Match>& matches) {
  const Convolution convolution = ReadCall(matches.front().root);
  const Expr slice = COLLAGE_TRY(CallOp("strided_slice", {matches.front().Find("data")},
                                        {{"begin", std::vector<int64_t>{0, 0}},
                                         {"end", std::vector<int64_t>{convolution.input[0], convolution.input[1]}},
                                         {"strides", std::vector<int64_t>{convolution.window.stride[0], convolution.window.stride[1]}},
                                         {"axes", std::vector<int64_t>{2, 3}}}));
  return std::vector<Expr>{COLLAGE_TRY(CallOp("nn.conv2d", {slice, matches.front().Find("weight")}, {{"groups", convolution.groups}}))};
}

Verdict IsProduct(const Match& match) {
  const Convolution convolution = ReadCall(match.root);
  if (!IsPointwise(convolution) || convolution.window.stride != Pair{1, 1}) return Verdict::Reject("it is no product of each element");
  if (convolution.groups != 1) return Verdict::Reject("it has groups");
  if (convolution.input == Pair{1, 1}) return Verdict::Reject("its planes have one element");
  return convolution.batch == 1 ? Verdict::Accept() : Verdict::Reject("its batch is not 1");
}

Result<std::vector<Expr>> ToProduct(const std::vector<Match>& matches) {
  const Match& match = matches.front();
  const Convolution convolution = ReadCall(match.root);
  const Expr rows = COLLAGE_TRY(Reshaped(match.Find("data"), {convolution.input_channels, convolution.input[0] * convolution.input[1]}));
  const Tensor weight = WeightOf(match).Reshaped({convolution.output_channels, convolution.input_channels});
  const Expr product = COLLAGE_TRY(CallOp("nn.matmul", {MakeConstant(weight), rows}));
  return std::vector<Expr>{COLLAGE_TRY(Reshaped(product, match.root->type().AsTensor()->shape))};
}

Verdict TakesWholePlane(const Match& match) {
  const Convolution convolution = ReadCall(match.root);
  if (!IsUnpadded(convolution.window) || convolution.window.kernel != convolution.input)
    return Verdict::Reject("its kernel is not all of its data");
  return convolution.groups == 1 ? Verdict::Accept() : Verdict::Reject("it has groups");
}

Result<std::vector<Expr>> ToDense(const std::vector<Match>& matches) {
  const Match& match = matches.front();
  const Convolution convolution = ReadCall(match.root);
  const int64_t elements = convolution.input_channels * convolution.input[0] * convolution.input[1];
  const Expr data = COLLAGE_TRY(Reshaped(match.Find("data"), {convolution.batch, elements}));
  const Expr weight = MakeConstant(WeightOf(match).Reshaped({convolution.output_channels, elements}));
  return std::vector<Expr>{COLLAGE_TRY(Reshaped(COLLAGE_TRY(CallOp("nn.dense", {data, weight})), match.root->type().AsTensor()->shape))};
}

Pattern PooledConvolution(const char* pooling) {
  const auto with_bias = [](const Pattern& convolution) {
    return pattern::CallOf("nn.bias_add", {convolution, pattern::IsConstant()}).As("biased");
  };
  return pattern::CallOf(pooling, {pattern::Optional(ConvolutionWithConstant().As("convolution"), with_bias)});
}

Verdict MayPoolFirst(const Match& match) {
  const Convolution convolution = ReadCall(match.Find("convolution"));
  if (!IsPointwise(convolution) || convolution.window.stride != Pair{1, 1}) return Verdict::Reject("it is no product of each element");
  const Expr biased = match.Find("biased");
  if (!biased) return Verdict::Accept();
  if (biased->As<Call>()->attributes.Int("axis", 1).value_or(-1) != 1) return Verdict::Reject("its bias is none of the channels");
  if (!IsCallOf(match.root, "nn.avg_pool2d")) return Verdict::Accept();
  const Result<Pooling> pooling = ReadPooling(*biased->type().AsTensor(), match.root->As<Call>()->attributes);
  // Padding that counts is zero without a bias, and was the bias's share with one.
  const bool counts_padding = pooling->count_include_pad && !IsUnpadded(pooling->window);
  return counts_padding ? Verdict::Reject("padding counts in its averages") : Verdict::Accept();
}

Result<std::vector<Expr>> ToPoolFirst(const std::vector<Match>& matches) {
  const Match& match = matches.front();
  const Call& pooling = *match.root->As<Call>();
  const Call& convolution = *match.Find("convolution")->As<Call>();
  const Expr pooled = COLLAGE_TRY(MakeCall(pooling.callee, {match.Find("data")}, pooling.attributes));
  const Expr result = COLLAGE_TRY(MakeCall(convolution.callee, {pooled, match.Find("weight")}, convolution.attributes));
  const Expr biased = match.Find("biased");
  if (!biased) return std::vector<Expr>{result};
  const Call& bias = *biased->As<Call>();
  return std::vector<Expr>{COLLAGE_TRY(MakeCall(bias.callee, {result, bias.args[1]}, bias.attributes))};
}

}  // namespace

FormRule StridedPointwiseForm() { return {"strided_pointwise", ConvolutionWithConstant(), IsStridedPointwise, ToSliced}; }

FormRule PointwiseProductForm() { return {"pointwise_product", ConvolutionWithConstant(), IsProduct, ToProduct}; }

FormRule WholePlaneForm() { return {"whole_plane", ConvolutionWithConstant(), TakesWholePlane, ToDense}; }

FormRule PooledPointwiseForm() { return {"pooled_pointwise", PooledConvolution("nn.avg_pool2d"), MayPoolFirst, ToPoolFirst}; }

FormRule GloballyPooledPointwiseForm() {
  return {"globally_pooled_pointwise", PooledConvolution("nn.global_avg_pool2d"), MayPoolFirst, ToPoolFirst};
}

}  // namespace collage
