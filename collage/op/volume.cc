#include "collage/op/volume.h"

#include <algorithm>
#include <string>

#include "collage/op/families.h"
#include "collage/op/rules.h"
#include "collage/op/window.h"

namespace collage {
namespace {

template <size_t Count>
Result<std::array<int64_t, Count>> ReadMany(const Attributes& attributes, const char* name, int64_t fallback, int64_t minimum) {
  const std::vector<int64_t> values = COLLAGE_TRY(collage::ReadMany(attributes, name, Count, fallback, minimum));
  std::array<int64_t, Count> result{};
  std::copy(values.begin(), values.end(), result.begin());
  return result;
}

Result<VolumeWindow> ReadWindow(const Attributes& attributes) {
  VolumeWindow window;
  window.stride = COLLAGE_TRY(ReadMany<3>(attributes, "strides", 1, 1));
  window.dilation = COLLAGE_TRY(ReadMany<3>(attributes, "dilation", 1, 1));
  const std::array<int64_t, 6> padding = COLLAGE_TRY(ReadMany<6>(attributes, "padding", 0, 0));
  std::copy_n(padding.begin(), 3, window.pad_begin.begin());
  std::copy_n(padding.begin() + 3, 3, window.pad_end.begin());
  return window;
}

Result<Triple> VolumeOf(const TensorType& type, const char* name) {
  COLLAGE_TRY_STATUS(ExpectRank(type, name, 5));
  for (size_t d = 0; d < 3; ++d) {
    if (type.shape[2 + d] > kMaximumExtent)
      return Fail(std::string(name) + " has shape " + ToString(type.shape) + ", expected extents of at most 2^30");
  }
  return Triple{type.shape[2], type.shape[3], type.shape[4]};
}

Result<int64_t> OutputExtent(const VolumeWindow& window, size_t d, int64_t input) {
  const int64_t room = input + window.pad_begin[d] + window.pad_end[d] - window.Span(d);
  if (room >= 0) return room / window.stride[d] + 1;
  return Fail("the window spans " + std::to_string(window.Span(d)) + " along spatial dimension " + std::to_string(d) +
              ", expected at most the " + std::to_string(room + window.Span(d)) + " of the padded data");
}

Status CheckTransposedOutput(VolumeConvolution& c, const Attributes& attributes) {
  const Triple output_padding = COLLAGE_TRY(ReadMany<3>(attributes, "output_padding", 0, 0));
  for (size_t d = 0; d < 3; ++d) {
    if (c.input[d] < 1 || output_padding[d] >= std::max(c.window.stride[d], c.window.dilation[d])) {
      return Fail("attribute 'output_padding' has the value " + std::to_string(output_padding[d]) +
                  ", expected less than the stride or the dilation, and data that is not empty");
    }
    c.output[d] =
        (c.input[d] - 1) * c.window.stride[d] + c.window.Span(d) - c.window.pad_begin[d] - c.window.pad_end[d] + output_padding[d];
    if (c.output[d] < 1) return Fail("padding leaves an output of " + std::to_string(c.output[d]) + ", expected at least 1");
  }
  return {};
}

}  // namespace

Result<VolumeConvolution> ReadVolumeConvolution(const TensorType& data, const TensorType& weight, const Attributes& attributes,
                                                bool transposed) {
  VolumeConvolution c{};
  c.window = COLLAGE_TRY(ReadWindow(attributes));
  c.input = COLLAGE_TRY(VolumeOf(data, "data"));
  c.window.kernel = COLLAGE_TRY(VolumeOf(weight, "weight"));
  c.batch = data.shape[0];
  c.input_channels = data.shape[1];
  c.groups = IntAttribute(attributes, "groups", 1);
  if (*std::min_element(weight.shape.begin(), weight.shape.end()) < 1) {
    return Fail("weight has shape " + ToString(weight.shape) + ", expected extents of at least 1");
  }
  if (c.groups < 1 || c.input_channels % c.groups != 0 || (!transposed && weight.shape[0] % c.groups != 0)) {
    return Fail("attribute 'groups' is " + std::to_string(c.groups) + ", expected a divisor of the channels of data and weight");
  }
  const int64_t inputs = transposed ? c.input_channels : c.input_channels / c.groups;
  if (weight.shape[transposed ? 0 : 1] != inputs) {
    return Fail("weight has shape " + ToString(weight.shape) + ", expected " + std::to_string(inputs) + " input channels");
  }
  if (transposed) {
    if (weight.shape[1] > kMaximumExtent / c.groups) return Fail("weight times groups has more than 2^30 output channels");
    c.output_channels = weight.shape[1] * c.groups;
    COLLAGE_TRY_STATUS(CheckTransposedOutput(c, attributes));
    return c;
  }
  c.output_channels = weight.shape[0];
  for (size_t d = 0; d < 3; ++d) c.output[d] = COLLAGE_TRY(OutputExtent(c.window, d, c.input[d]));
  return c;
}

Result<VolumePooling> ReadVolumePooling(const TensorType& data, const Attributes& attributes) {
  VolumePooling pooling{};
  pooling.window = COLLAGE_TRY(ReadWindow(attributes));
  pooling.input = COLLAGE_TRY(VolumeOf(data, "data"));
  pooling.window.kernel = COLLAGE_TRY(ReadMany<3>(attributes, "pool_size", 1, 1));
  pooling.batch = data.shape[0];
  pooling.channels = data.shape[1];
  pooling.count_include_pad = BoolAttribute(attributes, "count_include_pad", false);
  for (size_t d = 0; d < 3; ++d) pooling.output[d] = COLLAGE_TRY(OutputExtent(pooling.window, d, pooling.input[d]));
  return pooling;
}

namespace {

OpDef::TypeRule ConvolutionType(bool transposed) {
  return [transposed](TypeArguments arguments, const Attributes& attributes) -> Result<Type> {
    const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
    const TensorType weight = COLLAGE_TRY(TensorArgument(arguments, 1, "weight"));
    if (data.dtype != DType::kInt32) COLLAGE_TRY_STATUS(ExpectFloat(data, "data"));  // int32: sums of quantised models
    COLLAGE_TRY_STATUS(ExpectSameDType(weight, "weight", data, "data"));
    const VolumeConvolution c = COLLAGE_TRY(ReadVolumeConvolution(data, weight, attributes, transposed));
    return Type(TensorType{{c.batch, c.output_channels, c.output[0], c.output[1], c.output[2]}, data.dtype});
  };
}

template <bool transposed>
Work ConvolutionWork(TypeArguments arguments, const Type& result, const Attributes& attributes) {
  const VolumeConvolution c = *ReadVolumeConvolution(*arguments[0].AsTensor(), *arguments[1].AsTensor(), attributes, transposed);
  const WindowUse use = transposed ? UseOf(c.window, c.output, c.input) : UseOf(c.window, c.input, c.output);
  const int64_t group_inputs = c.input_channels / c.groups;
  return {2 * use.pairs * static_cast<double>(c.batch * c.output_channels * group_inputs),
          ByteCount(arguments[0]) + ByteCount(arguments[1]) + ByteCount(result)};
}

template <bool average>
Result<Type> PoolingType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  COLLAGE_TRY_STATUS(average ? ExpectFloat(data, "data") : ExpectNumber(data, "data"));
  const VolumePooling p = COLLAGE_TRY(ReadVolumePooling(data, attributes));
  return Type(TensorType{{p.batch, p.channels, p.output[0], p.output[1], p.output[2]}, data.dtype});
}

Work PoolingWork(TypeArguments arguments, const Type& result, const Attributes& attributes) {
  const Result<VolumePooling> pooling = ReadVolumePooling(*arguments[0].AsTensor(), attributes);
  return {static_cast<double>(pooling->window.Taps()) * ElementCount(result), ByteCount(arguments[0]) + ByteCount(result)};
}

const std::vector<AttributeSpec> kWindow = {{"strides", "ints", "steps of the window, default 1"},
                                            {"padding", "ints", "front, top, left, back, bottom, right (1 value: all), default 0"},
                                            {"dilation", "ints", "distance of the taps of the window, default 1"}};

OpDef Volume(std::string name, std::string summary, std::vector<std::string> arguments, std::vector<AttributeSpec> more) {
  OpDef op{.name = std::move(name), .summary = std::move(summary), .argument_names = std::move(arguments), .attributes = kWindow};
  op.attributes.insert(op.attributes.end(), more.begin(), more.end());
  op.kind = OpKind::kOutElementwiseFusable;
  return op;
}

}  // namespace

void AddVolumeOperators(OpTable& table) {
  const AttributeSpec groups{"groups", "int", "input and output channels are split into so many independent groups, default 1"};
  const AttributeSpec size{"pool_size", "ints", "depth, height and width of the window", true};
  OpDef convolution =
      Volume("nn.conv3d", "Convolution (cross-correlation) of NCDHW data with OIDHW weights, in groups.", {"data", "weight"}, {groups});
  convolution.infer_type = ConvolutionType(false);
  convolution.work = ConvolutionWork<false>;
  convolution.reference = ReferenceConv3d;
  Register(table, std::move(convolution));
  OpDef transposed =
      Volume("nn.conv3d_transpose", "Transposed convolution of NCDHW data with IODHW weights, in groups.", {"data", "weight"},
             {groups, {"output_padding", "ints", "elements added after the output, less than the stride, default 0"}});
  transposed.infer_type = ConvolutionType(true);
  transposed.work = ConvolutionWork<true>;
  transposed.reference = ReferenceConv3dTranspose;
  Register(table, std::move(transposed));
  OpDef largest =
      Volume("nn.max_pool3d", "Largest element under a window sliding over NCDHW data; padding does not take part.", {"data"}, {size});
  largest.is_within_arguments = true;
  largest.infer_type = PoolingType<false>;
  largest.work = PoolingWork;
  largest.reference = ReferenceMaxPool3d;
  Register(table, std::move(largest));
  OpDef average =
      Volume("nn.avg_pool3d", "Mean under a window sliding over NCDHW data; padding is zero and counts only with count_include_pad.",
             {"data"}, {size, {"count_include_pad", "bool", "padding counts in the divisor, default False"}});
  average.infer_type = PoolingType<true>;
  average.work = PoolingWork;
  average.reference = ReferenceAveragePool3d;
  Register(table, std::move(average));
}

}  // namespace collage
