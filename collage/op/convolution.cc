#include "collage/op/families.h"
#include "collage/op/kernels.h"
#include "collage/op/rules.h"
#include "collage/op/window.h"

namespace collage {
namespace {

std::vector<AttributeSpec> ConvolutionAttributes(const char* kernel_layout) {
  return {{"strides", "ints", "steps of the window down and across, default [1, 1]"},
          {"padding", "ints", "top, left, bottom, right (2 values: both vertical, both horizontal; 1: all), default 0"},
          {"dilation", "ints", "distance of the taps of the window, default [1, 1]"},
          {"groups", "int", "input and output channels are split into so many independent groups, default 1"},
          {"channels", "int", "number of output channels; when given it must agree with weight"},
          {"kernel_size", "ints", "height and width of the window; when given they must agree with weight"},
          {"data_layout", "string", "only \"NCHW\""},
          {"kernel_layout", "string", std::string("only \"") + kernel_layout + "\""},
          {"out_dtype", "string", "only the dtype of data, or \"\""}};
}

using Reader = Result<Convolution> (*)(const TensorType&, const TensorType&, const Attributes&);

OpDef::TypeRule ConvolutionType(Reader read) {
  return [read](TypeArguments arguments, const Attributes& attributes) -> Result<Type> {
    const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
    const TensorType weight = COLLAGE_TRY(TensorArgument(arguments, 1, "weight"));
    if (data.dtype != DType::kInt32) COLLAGE_TRY_STATUS(ExpectFloat(data, "data"));  // int32: sums of quantised models
    COLLAGE_TRY_STATUS(ExpectSameDType(weight, "weight", data, "data"));
    COLLAGE_TRY_STATUS(ExpectOutDType(attributes, data));
    const Convolution convolution = COLLAGE_TRY(read(data, weight, attributes));
    return Type(TensorType{{convolution.batch, convolution.output_channels, convolution.output[0], convolution.output[1]}, data.dtype});
  };
}

// Multiplies and adds where a tap of the window meets an element; padding is no work.
template <bool transposed>
Work ConvolutionWork(TypeArguments arguments, const Type& result, const Attributes& attributes) {
  const TensorType& data = *arguments[0].AsTensor();
  const TensorType& weight = *arguments[1].AsTensor();
  const Convolution c = *(transposed ? ReadTransposedConvolution : ReadConvolution)(data, weight, attributes);
  const WindowUse use = transposed ? UseOf(c.window, c.output, c.input) : UseOf(c.window, c.input, c.output);
  return {2 * use.pairs * static_cast<double>(c.batch * c.output_channels * (c.input_channels / c.groups)),
          ByteCount(arguments[0]) + ByteCount(arguments[1]) + ByteCount(result)};
}

}  // namespace

void AddConvolutionOperators(OpTable& table) {
  Register(table,
           {.name = "nn.conv2d",
            .summary = "Convolution (cross-correlation) of NCHW data with OIHW weights, in groups; the second extent of weight is the "
                       "input channels of a group.",
            .argument_names = {"data", "weight"},
            .attributes = ConvolutionAttributes("OIHW"),
            .kind = OpKind::kOutElementwiseFusable,
            .infer_type = ConvolutionType(ReadConvolution),
            .work = ConvolutionWork<false>,
            .reference = ReferenceConv2d});

  std::vector<AttributeSpec> attributes = ConvolutionAttributes("IOHW");
  attributes.push_back({"output_padding", "ints", "rows and columns added after the output, less than the stride, default [0, 0]"});
  Register(table,
           {.name = "nn.conv2d_transpose",
            .summary = "Transposed convolution of NCHW data with IOHW weights (the gradient of nn.conv2d with respect to its data); the "
                       "second extent of weight is the output channels of a group.",
            .argument_names = {"data", "weight"},
            .attributes = std::move(attributes),
            .kind = OpKind::kOutElementwiseFusable,
            .infer_type = ConvolutionType(ReadTransposedConvolution),
            .work = ConvolutionWork<true>,
            .reference = ReferenceConv2dTranspose});
}

}  // namespace collage
