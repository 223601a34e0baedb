#include "collage/op/volume.h"

#include <algorithm>

#include "collage/form/rules.h"

namespace collage {
namespace {

VolumeConvolution ReadMatch(const Match& match) {
  const Call& call = *match.root->As<Call>();
  return *ReadVolumeConvolution(*call.args[0]->type().AsTensor(), *call.args[1]->type().AsTensor(), call.attributes, /*transposed=*/false);
}

Pattern ConvolutionOfVolume() { return pattern::CallOf("nn.conv3d", {pattern::Wildcard().As("data"), pattern::IsConstant().As("weight")}); }

Result<Expr> Reshaped(const Expr& data, const Shape& shape) {
  return CallOp("reshape", {data}, {{"newshape", std::vector<int64_t>(shape)}});
}

/// nn.conv2d in two dimensions of a volume's window.
Result<Expr> Plane(const Expr& data, const Tensor& weight, const VolumeConvolution& volume, size_t rows, size_t columns) {
  const VolumeWindow& window = volume.window;
  const auto of_both = [&](const Triple& of) { return std::vector<int64_t>{of[rows], of[columns]}; };
  return CallOp(
      "nn.conv2d", {data, MakeConstant(weight)},
      {{"strides", of_both(window.stride)},
       {"padding", std::vector<int64_t>{window.pad_begin[rows], window.pad_begin[columns], window.pad_end[rows], window.pad_end[columns]}},
       {"dilation", of_both(window.dilation)},
       {"groups", volume.groups}});
}

/// The tap by which a result of one depth reads data of another; none: -1.
int64_t TapBetween(const VolumeWindow& window, int64_t from, int64_t to) {
  const int64_t reach = from + window.pad_begin[0] - to * window.stride[0];
  const bool is_tap = reach >= 0 && reach % window.dilation[0] == 0 && reach / window.dilation[0] < window.kernel[0];
  return is_tap ? reach / window.dilation[0] : -1;
}

Verdict HasShortDepth(const Match& match) {
  const VolumeConvolution volume = ReadMatch(match);
  if (match.root->type().AsTensor()->ElementCount() == 0) return Verdict::Reject("its result is empty");
  int64_t pairs = 0;
  for (int64_t to = 0; to < volume.output[0]; ++to) {
    for (int64_t from = 0; from < volume.input[0]; ++from) pairs += TapBetween(volume.window, from, to) >= 0 ? 1 : 0;
  }
  // The fast algorithms that planes have and volumes have not save up to that (F(2x2, 3x3): 36 / 16).
  constexpr double kMostGain = 2.25;
  const bool is_worth_it = static_cast<double>(volume.input[0] * volume.output[0]) <= kMostGain * static_cast<double>(pairs);
  return is_worth_it ? Verdict::Accept() : Verdict::Reject("its depth is not short");
}

/// Channels and then depths, of results and of data.
Tensor WeightOfAllDepths(const Tensor& weight, const VolumeConvolution& volume) {
  const Triple& kernel = volume.window.kernel;
  const int64_t inputs = volume.input_channels / volume.groups;
  const Shape shape = {volume.output_channels * volume.output[0], inputs * volume.input[0], kernel[1], kernel[2]};
  const int64_t taps = kernel[1] * kernel[2];
  return Rearranged(weight, shape, [&, taps](int64_t i) {
    const int64_t from = i / taps % shape[1];
    const int64_t to = i / taps / shape[1];
    const int64_t tap = TapBetween(volume.window, from % volume.input[0], to % volume.output[0]);
    if (tap < 0) return int64_t{-1};
    return ((to / volume.output[0] * inputs + from / volume.input[0]) * kernel[0] + tap) * taps + i % taps;
  });
}

Result<std::vector<Expr>> ToPlanesOfAllDepths(const std::vector<Match>& matches) {
  const Match& match = matches.front();
  const VolumeConvolution volume = ReadMatch(match);
  const Expr data =
      COLLAGE_TRY(Reshaped(match.Find("data"), {volume.batch, volume.input_channels * volume.input[0], volume.input[1], volume.input[2]}));
  const Expr planes = COLLAGE_TRY(Plane(data, WeightOfAllDepths(match.Find("weight")->As<Constant>()->value, volume), volume, 1, 2));
  return std::vector<Expr>{COLLAGE_TRY(Reshaped(planes, match.root->type().AsTensor()->shape))};
}

Verdict ReachesAlongTheDepthAlone(const Match& match) {
  const VolumeConvolution volume = ReadMatch(match);
  for (size_t d = 1; d < 3; ++d) {
    const bool is_pointwise =
        volume.window.kernel[d] == 1 && volume.window.stride[d] == 1 && volume.window.pad_begin[d] == 0 && volume.window.pad_end[d] == 0;
    if (!is_pointwise) return Verdict::Reject("it reaches across the plane");
  }
  return match.root->type().AsTensor()->ElementCount() > 0 ? Verdict::Accept() : Verdict::Reject("its result is empty");
}

Result<std::vector<Expr>> ToPlaneOfDepth(const std::vector<Match>& matches) {
  const Match& match = matches.front();
  VolumeConvolution volume = ReadMatch(match);
  const Expr data =
      COLLAGE_TRY(Reshaped(match.Find("data"), {volume.batch, volume.input_channels, volume.input[0], volume.input[1] * volume.input[2]}));
  const Tensor& weight = match.Find("weight")->As<Constant>()->value;
  const Shape shape = {weight.shape()[0], weight.shape()[1], weight.shape()[2], 1};
  const Expr plane = COLLAGE_TRY(Plane(data, weight.Reshaped(shape), volume, 0, 2));
  return std::vector<Expr>{COLLAGE_TRY(Reshaped(plane, match.root->type().AsTensor()->shape))};
}

}  // namespace

FormRule ShortDepthForm() { return {"short_depth", ConvolutionOfVolume(), HasShortDepth, ToPlanesOfAllDepths}; }

FormRule DepthAloneForm() { return {"depth_alone", ConvolutionOfVolume(), ReachesAlongTheDepthAlone, ToPlaneOfDepth}; }

}  // namespace collage
