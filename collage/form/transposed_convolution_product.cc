#include <algorithm>

#include "collage/form/rules.h"
#include "collage/op/volume.h"
#include "collage/op/window.h"
#include "collage/tensor/narrow.h"

namespace collage {
namespace {

/// Of any number of spatial dimensions.
struct Transposed {
  int64_t batch;
  int64_t groups;
  int64_t input_channels;
  int64_t output_channels;
  std::vector<int64_t> input;
  std::vector<int64_t> output;
  std::vector<int64_t> kernel;
  std::vector<int64_t> stride;
  std::vector<int64_t> dilation;
  std::vector<int64_t> pad_begin;

  template <class AnyConvolution>
  explicit Transposed(const AnyConvolution& c)
      : batch(c.batch),
        groups(c.groups),
        input_channels(c.input_channels),
        output_channels(c.output_channels),
        input(c.input.begin(), c.input.end()),
        output(c.output.begin(), c.output.end()),
        kernel(c.window.kernel.begin(), c.window.kernel.end()),
        stride(c.window.stride.begin(), c.window.stride.end()),
        dilation(c.window.dilation.begin(), c.window.dilation.end()),
        pad_begin(c.window.pad_begin.begin(), c.window.pad_begin.end()) {}

  static Transposed Of(const Match& match) {
    const Call& call = *match.root->As<Call>();
    const TensorType& data = *call.args[0]->type().AsTensor();
    const TensorType& weight = *call.args[1]->type().AsTensor();
    if (IsCallOf(match.root, "nn.conv2d_transpose")) return Transposed(*ReadTransposedConvolution(data, weight, call.attributes));
    return Transposed(*ReadVolumeConvolution(data, weight, call.attributes, /*transposed=*/true));
  }

  /// Elements that all blocks together reach behind the image; less than zero: of the image that they do not reach.
  [[nodiscard]] int64_t Behind(size_t d) const {
    return (input[d] - 1) * stride[d] + (kernel[d] - 1) * dilation[d] + 1 - pad_begin[d] - output[d];
  }
};

/// What padding cuts off is computed too, and no bound is set to that: kernels of transposed convolutions may be this very product, so
/// which of them loses by it is for the measurement to say.
Verdict CanBeProduct(const Match& match) {
  const Transposed transposed = Transposed::Of(match);
  if (transposed.groups != 1) return Verdict::Reject("it has groups");
  const TensorType& result = *match.root->type().AsTensor();
  if (result.ElementCount() == 0) return Verdict::Reject("its result is empty");
  if (IsNarrow(result.dtype)) return Verdict::Reject("its sums would be rounded twice");
  for (size_t d = 0; d < transposed.input.size(); ++d) {
    // That many elements would be room for another block.
    if (-transposed.Behind(d) >= transposed.stride[d]) return Verdict::Reject("a whole stride of its results is behind all taps");
  }
  return Verdict::Accept();
}

/// IOHW as rows of outputs and taps.
Tensor RowsOf(const Tensor& weight) {
  const int64_t inputs = weight.shape()[0];
  const int64_t rows = weight.ElementCount() / inputs;
  return Rearranged(weight, {rows, inputs}, [=](int64_t i) { return i % inputs * rows + i / inputs; });
}

Result<std::vector<Expr>> ToProduct(const std::vector<Match>& matches) {
  const Match& match = matches.front();
  const Transposed transposed = Transposed::Of(match);
  const auto reshaped = [](const Expr& data, const Shape& shape) {
    return CallOp("reshape", {data}, {{"newshape", std::vector<int64_t>(shape)}});
  };
  const Tensor rows = RowsOf(match.Find("weight")->As<Constant>()->value);
  const int64_t places = ElementCount(transposed.input);
  // A single product is one of matrices, which more libraries take.
  const bool is_single = transposed.batch == 1;
  const Shape planes = is_single ? Shape{transposed.input_channels, places} : Shape{transposed.batch, transposed.input_channels, places};
  const Expr data = COLLAGE_TRY(reshaped(match.Find("data"), planes));
  Expr blocks = COLLAGE_TRY(CallOp("nn.matmul", {MakeConstant(rows), data}));
  if (is_single) blocks = COLLAGE_TRY(reshaped(blocks, {1, rows.shape()[0], places}));
  std::vector<int64_t> padding = transposed.pad_begin;
  for (size_t d = 0; d < transposed.input.size(); ++d) padding.push_back(std::max<int64_t>(0, transposed.Behind(d)));
  return std::vector<Expr>{COLLAGE_TRY(CallOp("nn.col2im", {blocks},
                                              {{"output_size", transposed.output},
                                               {"kernel_size", transposed.kernel},
                                               {"strides", transposed.stride},
                                               {"dilation", transposed.dilation},
                                               {"padding", padding}}))};
}

}  // namespace

FormRule TransposedConvolutionProductForm() {
  const auto of = [](const char* op) { return pattern::CallOf(op, {pattern::Wildcard().As("data"), pattern::IsConstant().As("weight")}); };
  return {"transposed_convolution_product", pattern::Or({of("nn.conv2d_transpose"), of("nn.conv3d_transpose")}), CanBeProduct, ToProduct};
}

}  // namespace collage
