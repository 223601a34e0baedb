#include "collage/backend/xnnpack/layer.h"

#include <algorithm>
#include <string>

#include "collage/op/window.h"

namespace collage::xnnpack {
namespace {

const TensorType& TypeOf(const OpSequence& sequence, size_t value) { return sequence.values[value].type; }

// Of results that XNNPACK counts itself: rounded down, as without ceil_mode.
bool IsRoundedDown(const Pooling& pooling) {
  for (size_t d = 0; d < 2; ++d) {
    const Window& window = pooling.window;
    const int64_t padded = pooling.input[d] + window.pad_begin[d] + window.pad_end[d];
    if (pooling.output[d] != (padded - window.Span(d)) / window.stride[d] + 1) return false;
  }
  return true;
}

// Its kernels for pooling read four channels at a time, beyond the last ones too.
Status CheckPooledChannels(int64_t channels) {
  if (channels % 4 != 0) return Fail("XNNPACK: pooling reads beyond a tensor whose channels are no multiple of 4");
  return {};
}

Status CheckPooling(const OpSequence& sequence, const OpSequence::Step& step) {
  const Pooling pooling = COLLAGE_TRY(ReadPooling(TypeOf(sequence, step.inputs[0]), step.attributes));
  const Window& window = pooling.window;
  COLLAGE_TRY_STATUS(CheckPooledChannels(pooling.channels));
  if (window.kernel[0] * window.kernel[1] == 1) return Fail("XNNPACK: a pooling window of one element is refused");
  if (!IsRoundedDown(pooling)) return Fail("XNNPACK: ceil_mode is not supported");
  for (size_t d = 0; d < 2; ++d) {
    if (std::max(window.pad_begin[d], window.pad_end[d]) >= window.kernel[d]) return Fail("XNNPACK: padding is wider than the window");
  }
  if (step.op->name == "nn.max_pool2d") return {};
  if (window.dilation != std::array<int64_t, 2>{1, 1}) return Fail("XNNPACK: average pooling has no dilation");
  const bool is_padded = window.pad_begin != std::array<int64_t, 2>{0, 0} || window.pad_end != std::array<int64_t, 2>{0, 0};
  if (pooling.count_include_pad && is_padded) return Fail("XNNPACK: padding does not count in an average");
  return {};
}

Status CheckBase(const OpSequence& sequence, const OpSequence::Step& step) {
  const std::string& name = step.op->name;
  if (name == "nn.conv2d") {
    COLLAGE_TRY(ReadConvolution(TypeOf(sequence, step.inputs[0]), TypeOf(sequence, step.inputs[1]), step.attributes));
  } else if (name == "nn.max_pool2d" || name == "nn.avg_pool2d") {
    return CheckPooling(sequence, step);
  } else if (name == "nn.global_avg_pool2d") {
    return CheckPooledChannels(TypeOf(sequence, step.inputs[0]).shape[1]);
  } else if (name != "nn.dense") {
    return Fail("XNNPACK: " + name + " is not among its operators");
  }
  if (!sequence.values[step.inputs[1]].constant) return Fail("XNNPACK: weights must be constant");
  if (sequence.values[step.inputs[0]].constant) return Fail("XNNPACK: data are constant");
  return {};
}

// A constant beside the result of the layer that has one value for each of its channels.
Result<size_t> BiasOf(const OpSequence& sequence, const OpSequence::Step& step, size_t result, size_t channel) {
  const bool is_first = step.inputs[0] == result;
  const size_t bias = step.inputs[is_first ? 1 : 0];
  const Shape& shape = TypeOf(sequence, result).shape;
  const TensorType& type = TypeOf(sequence, bias);
  if (!sequence.values[bias].constant || step.inputs[0] == step.inputs[1]) return Fail("XNNPACK: what is added is no constant bias");
  bool is_along = type.ElementCount() == shape[channel];
  if (step.op->name == "nn.bias_add") {
    int64_t axis = COLLAGE_TRY(step.attributes.Int("axis", 1));
    if (axis < 0) axis += static_cast<int64_t>(shape.size());
    is_along = is_along && is_first && axis == static_cast<int64_t>(channel);
  } else {
    // Aligned at the last dimension.
    is_along = is_along && type.shape.size() + channel >= shape.size() && type.shape.size() <= shape.size() &&
               type.shape[type.shape.size() + channel - shape.size()] == shape[channel];
  }
  if (!is_along) return Fail("XNNPACK: what is added is not one value for each channel");
  return bias;
}

}  // namespace

bool IsOfImages(const Layer& layer) { return layer.base->op->name != "nn.dense"; }

Result<Layer> RecogniseLayer(const OpSequence& sequence) {
  if (sequence.steps.empty()) return Fail("XNNPACK: nothing is computed");
  for (const OpSequence::Value& value : sequence.values) {
    if (value.type.dtype != DType::kFloat32) return Fail("XNNPACK: float32 is supported");
    if (value.type.ElementCount() == 0) return Fail("XNNPACK: a tensor has no elements");
  }
  Layer layer{&sequence.steps[0]};
  COLLAGE_TRY_STATUS(CheckBase(sequence, *layer.base));
  size_t result = layer.base->outputs[0];
  const size_t channel = IsOfImages(layer) ? 1 : TypeOf(sequence, result).shape.size() - 1;
  const bool is_weighted = layer.base->inputs.size() == 2;
  for (size_t i = 1; i < sequence.steps.size(); ++i) {
    const OpSequence::Step& step = sequence.steps[i];
    const std::string& name = step.op->name;
    const bool is_bounded = layer.low != -std::numeric_limits<float>::infinity() || layer.high != std::numeric_limits<float>::infinity();
    if (is_bounded) return Fail("XNNPACK: " + name + " comes behind the bounds of a layer");
    if ((name == "nn.bias_add" || name == "add") && is_weighted && !layer.bias) {
      layer.bias = COLLAGE_TRY(BiasOf(sequence, step, result, channel));
    } else if (name == "nn.relu") {
      layer.low = 0;
    } else if (name == "clip") {
      layer.low = static_cast<float>(COLLAGE_TRY(step.attributes.Double("a_min", 0)));
      layer.high = static_cast<float>(COLLAGE_TRY(step.attributes.Double("a_max", 0)));
      if (!(layer.low < layer.high)) return Fail("XNNPACK: the bounds of clip hold one value at most");
    } else {
      return Fail("XNNPACK: " + name + " is no part of a layer");
    }
    result = step.outputs[0];
  }
  if (sequence.results.size() != 1 || sequence.results[0] != result) return Fail("XNNPACK: the result is not the end of the layer");
  return layer;
}

}  // namespace collage::xnnpack
