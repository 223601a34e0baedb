#include "collage/op/window.h"

#include <algorithm>
#include <string>

#include "collage/op/rules.h"

namespace collage {
namespace {

Result<std::array<int64_t, 2>> Pair(const Attributes& attributes, const char* name, int64_t fallback, int64_t minimum) {
  const std::vector<int64_t> values = IntsAttribute(attributes, name, {fallback, fallback});
  if (values.empty() || values.size() > 2) {
    return Fail("attribute '" + std::string(name) + "' has " + std::to_string(values.size()) + " values, expected 1 or 2");
  }
  for (int64_t value : values) {
    if (value < minimum || value > kMaximumExtent) {
      return Fail("attribute '" + std::string(name) + "' has the value " + std::to_string(value) + ", expected at least " +
                  std::to_string(minimum));
    }
  }
  return std::array<int64_t, 2>{values.front(), values.back()};
}

Status ReadPadding(const Attributes& attributes, Window& window) {
  const std::vector<int64_t> values = IntsAttribute(attributes, "padding", {0, 0, 0, 0});
  for (int64_t value : values) {
    if (value < 0 || value > kMaximumExtent)
      return Fail("attribute 'padding' has the value " + std::to_string(value) + ", expected at least 0");
  }
  if (values.size() == 1) {
    window.pad_begin = window.pad_end = {values[0], values[0]};
  } else if (values.size() == 2) {
    window.pad_begin = window.pad_end = {values[0], values[1]};
  } else if (values.size() == 4) {
    window.pad_begin = {values[0], values[1]};
    window.pad_end = {values[2], values[3]};
  } else {
    return Fail("attribute 'padding' has " + std::to_string(values.size()) + " values, expected 1, 2 or 4 (top, left, bottom, right)");
  }
  return {};
}

Status ExpectLayout(const Attributes& attributes, const char* name, const char* expected) {
  const std::string layout = StringAttribute(attributes, name, expected);
  if (layout == expected || layout.empty()) return {};
  return Fail("attribute '" + std::string(name) + "' is \"" + layout + "\", expected \"" + expected + "\"");
}

Result<Window> ReadWindow(const Attributes& attributes) {
  Window window;
  window.stride = COLLAGE_TRY(Pair(attributes, "strides", 1, 1));
  window.dilation = COLLAGE_TRY(Pair(attributes, "dilation", 1, 1));
  COLLAGE_TRY_STATUS(ReadPadding(attributes, window));
  return window;
}

// The constraints that both convolutions share: four dimensions, kernel_size and channels that agree with the weight.
Result<Convolution> ReadCommon(const TensorType& data, const TensorType& weight, const Attributes& attributes) {
  COLLAGE_TRY_STATUS(ExpectRank(data, "data", 4));
  COLLAGE_TRY_STATUS(ExpectRank(weight, "weight", 4));
  COLLAGE_TRY_STATUS(ExpectLayout(attributes, "data_layout", "NCHW"));
  Convolution convolution{};
  convolution.window = COLLAGE_TRY(ReadWindow(attributes));
  for (int64_t extent : weight.shape) {
    if (extent < 1) return Fail("weight has shape " + ToString(weight.shape) + ", expected extents of at least 1");
  }
  for (size_t d = 0; d < 2; ++d) {
    if (data.shape[2 + d] > kMaximumExtent || weight.shape[2 + d] > kMaximumExtent) return Fail("data or weight is larger than 2^30");
  }
  convolution.window.kernel = {weight.shape[2], weight.shape[3]};
  const std::array<int64_t, 2> kernel = COLLAGE_TRY(Pair(attributes, "kernel_size", 1, 1));
  if (HasAttribute(attributes, "kernel_size") && kernel != convolution.window.kernel) {
    return Fail("attribute 'kernel_size' is [" + std::to_string(kernel[0]) + ", " + std::to_string(kernel[1]) + "], expected [" +
                std::to_string(weight.shape[2]) + ", " + std::to_string(weight.shape[3]) + "] as weight has");
  }
  convolution.groups = IntAttribute(attributes, "groups", 1);
  convolution.batch = data.shape[0];
  convolution.input_channels = data.shape[1];
  convolution.input = {data.shape[2], data.shape[3]};
  if (convolution.groups < 1) return Fail("attribute 'groups' is " + std::to_string(convolution.groups) + ", expected at least 1");
  if (data.shape[1] % convolution.groups != 0) {
    return Fail("data has " + std::to_string(data.shape[1]) +
                " channels, expected a multiple of groups=" + std::to_string(convolution.groups));
  }
  return convolution;
}

Status CheckChannels(const Convolution& convolution, const Attributes& attributes) {
  const int64_t channels = IntAttribute(attributes, "channels", convolution.output_channels);
  if (channels == convolution.output_channels) return {};
  return Fail("attribute 'channels' is " + std::to_string(channels) + ", expected " + std::to_string(convolution.output_channels) +
              " as weight gives");
}

// With ceil_mode the only window may reach beyond the padded data by less than a stride.
Status CheckSpan(const Window& window, const std::array<int64_t, 2>& input, bool ceil_mode) {
  for (size_t d = 0; d < 2; ++d) {
    const int64_t padded = input[d] + window.pad_begin[d] + window.pad_end[d];
    const int64_t beyond = ceil_mode && input[d] > 0 ? window.stride[d] - 1 : 0;
    if (window.Span(d) > padded + beyond) {
      return Fail("the window spans " + std::to_string(window.Span(d)) + (d == 0 ? " rows" : " columns") + ", expected at most the " +
                  std::to_string(padded) + " of the padded data");
    }
  }
  return {};
}

// A window that ceil_mode adds but that would start in the padding after the data sees nothing, and is dropped (as ONNX and
// PyTorch do).
int64_t OutputExtent(const Window& window, size_t d, int64_t input, bool ceil_mode) {
  const int64_t room = input + window.pad_begin[d] + window.pad_end[d] - window.Span(d);
  if (!ceil_mode) return room / window.stride[d] + 1;
  const int64_t extent = room < 0 ? 1 : (room + window.stride[d] - 1) / window.stride[d] + 1;
  return (extent - 1) * window.stride[d] >= input + window.pad_begin[d] ? extent - 1 : extent;
}

}  // namespace

Result<std::vector<int64_t>> ReadMany(const Attributes& attributes, const char* name, size_t count, int64_t fallback, int64_t minimum) {
  std::vector<int64_t> values = IntsAttribute(attributes, name, {fallback});
  if (values.size() == 1) values.assign(count, values[0]);
  if (values.size() != count) {
    return Fail("attribute '" + std::string(name) + "' has " + std::to_string(values.size()) + " values, expected 1 or " +
                std::to_string(count));
  }
  for (const int64_t value : values) {
    if (value < minimum || value > kMaximumExtent) {
      return Fail("attribute '" + std::string(name) + "' has the value " + std::to_string(value) + ", expected at least " +
                  std::to_string(minimum));
    }
  }
  return values;
}

Result<Convolution> ReadConvolution(const TensorType& data, const TensorType& weight, const Attributes& attributes) {
  Convolution convolution = COLLAGE_TRY(ReadCommon(data, weight, attributes));
  COLLAGE_TRY_STATUS(ExpectLayout(attributes, "kernel_layout", "OIHW"));
  if (weight.shape[1] != data.shape[1] / convolution.groups) {
    return Fail("weight has shape " + ToString(weight.shape) + ", expected " + std::to_string(data.shape[1] / convolution.groups) +
                " as its second extent (the channels of data / groups)");
  }
  if (weight.shape[0] % convolution.groups != 0) {
    return Fail("weight has " + std::to_string(weight.shape[0]) +
                " output channels, expected a multiple of groups=" + std::to_string(convolution.groups));
  }
  convolution.output_channels = weight.shape[0];
  COLLAGE_TRY_STATUS(CheckChannels(convolution, attributes));
  COLLAGE_TRY_STATUS(CheckSpan(convolution.window, convolution.input, false));
  for (size_t d = 0; d < 2; ++d) convolution.output[d] = OutputExtent(convolution.window, d, convolution.input[d], false);
  return convolution;
}

Result<Convolution> ReadTransposedConvolution(const TensorType& data, const TensorType& weight, const Attributes& attributes) {
  Convolution convolution = COLLAGE_TRY(ReadCommon(data, weight, attributes));
  COLLAGE_TRY_STATUS(ExpectLayout(attributes, "kernel_layout", "IOHW"));
  if (weight.shape[0] != data.shape[1]) {
    return Fail("weight has shape " + ToString(weight.shape) + ", expected " + std::to_string(data.shape[1]) +
                " as its first extent (the channels of data)");
  }
  if (weight.shape[1] > kMaximumExtent / convolution.groups) return Fail("weight times groups has more than 2^30 output channels");
  convolution.output_channels = weight.shape[1] * convolution.groups;
  COLLAGE_TRY_STATUS(CheckChannels(convolution, attributes));
  const std::array<int64_t, 2> output_padding = COLLAGE_TRY(Pair(attributes, "output_padding", 0, 0));
  const Window& window = convolution.window;
  for (size_t d = 0; d < 2; ++d) {
    if (output_padding[d] >= std::max(window.stride[d], window.dilation[d])) {
      return Fail("attribute 'output_padding' has the value " + std::to_string(output_padding[d]) +
                  ", expected less than the stride or the dilation");
    }
    if (convolution.input[d] < 1) return Fail("data has shape " + ToString(data.shape) + ", expected a height and width of at least 1");
    convolution.output[d] =
        (convolution.input[d] - 1) * window.stride[d] + window.Span(d) - window.pad_begin[d] - window.pad_end[d] + output_padding[d];
    if (convolution.output[d] < 1) {
      return Fail("padding leaves an output of " + std::to_string(convolution.output[d]) + (d == 0 ? " rows" : " columns") +
                  ", expected at least 1");
    }
  }
  return convolution;
}

Result<Pooling> ReadPooling(const TensorType& data, const Attributes& attributes) {
  COLLAGE_TRY_STATUS(ExpectRank(data, "data", 4));
  COLLAGE_TRY_STATUS(ExpectLayout(attributes, "layout", "NCHW"));
  Pooling pooling{data.shape[0], data.shape[1], {data.shape[2], data.shape[3]}, {}, COLLAGE_TRY(ReadWindow(attributes)), false, false};
  Window& window = pooling.window;
  window.kernel = COLLAGE_TRY(Pair(attributes, "pool_size", 1, 1));
  pooling.ceil_mode = BoolAttribute(attributes, "ceil_mode", false);
  pooling.count_include_pad = BoolAttribute(attributes, "count_include_pad", false);
  for (size_t d = 0; d < 2; ++d) {
    if (data.shape[2 + d] > kMaximumExtent) return Fail("data has shape " + ToString(data.shape) + ", expected extents of at most 2^30");
    const int64_t padding = std::max(window.pad_begin[d], window.pad_end[d]);
    if (padding >= window.Span(d)) {
      return Fail("attribute 'padding' has the value " + std::to_string(padding) + ", expected less than the " +
                  std::to_string(window.Span(d)) + (d == 0 ? " rows" : " columns") + " that the window spans");
    }
  }
  COLLAGE_TRY_STATUS(CheckSpan(window, pooling.input, pooling.ceil_mode));
  for (size_t d = 0; d < 2; ++d) pooling.output[d] = OutputExtent(window, d, pooling.input[d], pooling.ceil_mode);
  return pooling;
}

}  // namespace collage
