#include <algorithm>
#include <array>

#include "collage/form/rules.h"
#include "collage/op/window.h"

namespace collage {
namespace {

/// One dimension. Counted from the first result before padding is cut off, result q * s + r takes from element q - j of the data, for each
/// j, by tap j * s + r. So with J taps in j all results of q come from J elements that end at q: a convolution over q for each r.
struct Dimension {
  int64_t stride;
  int64_t taps;       ///< J
  int64_t begin;      ///< first q computed
  int64_t count;      ///< of q
  int64_t crop;       ///< results before the first one that is wanted
  int64_t pad_begin;  ///< of the convolution over q
  int64_t pad_end;

  static Dimension Of(const Convolution& convolution, size_t d) {
    const Window& window = convolution.window;
    const int64_t s = window.stride[d];
    const int64_t taps = (window.kernel[d] + s - 1) / s;
    // Negative padding there is none: what it would cut off is computed, and cut off behind.
    const int64_t begin = std::min(window.pad_begin[d] / s, taps - 1);
    const int64_t end = std::max((window.pad_begin[d] + convolution.output[d] - 1) / s + 1, convolution.input[d]);
    return {s, taps, begin, end - begin, window.pad_begin[d] - begin * s, taps - 1 - begin, end - convolution.input[d]};
  }
};

Convolution ReadMatch(const Match& match) {
  const Call& call = *match.root->As<Call>();
  return *ReadTransposedConvolution(*call.args[0]->type().AsTensor(), *call.args[1]->type().AsTensor(), call.attributes);
}

Verdict CanBeConvolution(const Match& match) {
  const Convolution convolution = ReadMatch(match);
  if (convolution.groups != 1) return Verdict::Reject("it has groups");
  if (convolution.window.dilation != std::array<int64_t, 2>{1, 1}) return Verdict::Reject("it is dilated");
  if (convolution.window.stride[0] != convolution.window.stride[1]) return Verdict::Reject("its strides differ");
  if (convolution.window.stride[0] == 1) return Verdict::Reject("its stride is 1");
  if (match.root->type().AsTensor()->ElementCount() == 0) return Verdict::Reject("its result is empty");
  return Verdict::Accept();
}

/// OIHW, outputs by place in the block and then channel, of IOHW.
Tensor WeightOf(const Tensor& weight, const Convolution& convolution, const std::array<Dimension, 2>& dimensions) {
  const int64_t s = dimensions[0].stride;
  const int64_t outputs = convolution.output_channels;
  const Shape shape = {s * s * outputs, convolution.input_channels, dimensions[0].taps, dimensions[1].taps};
  return Rearranged(weight, shape, [&](int64_t i) {
    const std::array<int64_t, 2> from_end = {i / shape[3] % shape[2], i % shape[3]};
    const int64_t input = i / (shape[2] * shape[3]) % shape[1];
    const int64_t output = i / (shape[1] * shape[2] * shape[3]);
    const std::array<int64_t, 2> place = {output / outputs / s, output / outputs % s};
    int64_t source = input * outputs + output % outputs;
    for (size_t d = 0; d < 2; ++d) {
      const int64_t tap = (dimensions[d].taps - 1 - from_end[d]) * s + place[d];
      if (tap >= convolution.window.kernel[d]) return int64_t{-1};
      source = source * convolution.window.kernel[d] + tap;
    }
    return source;
  });
}

Result<std::vector<Expr>> ToConvolution(const std::vector<Match>& matches) {
  const Match& match = matches.front();
  const Convolution convolution = ReadMatch(match);
  const std::array<Dimension, 2> dimensions = {Dimension::Of(convolution, 0), Dimension::Of(convolution, 1)};
  const auto& [rows, columns] = dimensions;
  const Tensor weight = WeightOf(match.Find("weight")->As<Constant>()->value, convolution, dimensions);
  const Expr blocks =
      COLLAGE_TRY(CallOp("nn.conv2d", {match.Find("data"), MakeConstant(weight)},
                         {{"padding", std::vector<int64_t>{rows.pad_begin, columns.pad_begin, rows.pad_end, columns.pad_end}}}));
  const Expr plane = COLLAGE_TRY(CallOp("nn.depth_to_space", {blocks}, {{"block_size", rows.stride}}));
  if (plane->type() == match.root->type()) return std::vector<Expr>{plane};
  const Expr cropped =
      COLLAGE_TRY(CallOp("strided_slice", {plane},
                         {{"begin", std::vector<int64_t>{rows.crop, columns.crop}},
                          {"end", std::vector<int64_t>{rows.crop + convolution.output[0], columns.crop + convolution.output[1]}},
                          {"axes", std::vector<int64_t>{2, 3}}}));
  return std::vector<Expr>{cropped};
}

}  // namespace

FormRule TransposedConvolutionForm() {
  const Pattern pattern = pattern::CallOf("nn.conv2d_transpose", {pattern::Wildcard().As("data"), pattern::IsConstant().As("weight")});
  return {"transposed_convolution", pattern, CanBeConvolution, ToConvolution};
}

}  // namespace collage
