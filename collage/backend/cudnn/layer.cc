#include "collage/backend/cudnn/layer.h"

#include <algorithm>
#include <span>
#include <string>

#include "collage/backend/layer_steps.h"
#include "collage/backend/written_out_activation.h"
#include "collage/op/volume.h"
#include "collage/op/window.h"

namespace collage::cudnn {
namespace {

using Step = OpSequence::Step;

constexpr size_t kChannels = 1;      // the dimension
constexpr size_t kFirstSpatial = 2;  // behind batch and channels

const TensorType& TypeOf(const OpSequence& sequence, size_t value) { return sequence.values[value].type; }
const Shape& ShapeOf(const OpSequence& sequence, size_t value) { return sequence.values[value].type.shape; }

template <class AnyWindow>
SlidingWindow WindowOf(const AnyWindow& window) {
  const auto list = [](const auto& of) { return std::vector<int64_t>(of.begin(), of.end()); };
  return {list(window.kernel), list(window.stride), list(window.dilation), list(window.pad_begin), list(window.pad_end)};
}

int64_t Span(const SlidingWindow& window, size_t d) { return (window.kernel[d] - 1) * window.dilation[d] + 1; }

/// The library finds the smaller plane from the larger one, and refuses another.
Status CheckPlanes(const SlidingWindow& window, const Shape& larger, const Shape& smaller) {
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    const int64_t room = larger[kFirstSpatial + d] + window.pad_begin[d] + window.pad_end[d] - Span(window, d);
    if (room < 0 || room / window.stride[d] + 1 != smaller[kFirstSpatial + d])
      return Fail("cudnn: a plane of " + ToString(larger) + " is not all that the windows of " + ToString(smaller) + " meet");
  }
  return {};
}

bool IsPaddedEvenly(const SlidingWindow& window) { return window.pad_begin == window.pad_end; }

Result<Layer> ReadConvolutionLayer(const OpSequence& sequence, const Step& step, bool transposed) {
  const TensorType& data = TypeOf(sequence, step.inputs[0]);
  const TensorType& weight = TypeOf(sequence, step.inputs[1]);
  const bool is_volume = step.op->name.starts_with("nn.conv3d");
  const auto read = transposed ? ReadTransposedConvolution : ReadConvolution;
  Layer layer{.operation = transposed ? Operation::kTransposedConvolution : Operation::kConvolution,
              .window = is_volume ? WindowOf(COLLAGE_TRY(ReadVolumeConvolution(data, weight, step.attributes, transposed)).window)
                                  : WindowOf(COLLAGE_TRY(read(data, weight, step.attributes)).window),
              .data = step.inputs[0],
              .weight = step.inputs[1],
              .result = step.outputs[0],
              .dtype = data.dtype};
  // cuDNN 9.19 takes these, and gives other numbers.
  if (transposed && !IsPaddedEvenly(layer.window)) return Fail("cudnn: a transposed convolution is padded alike on both sides");
  const Shape& result = ShapeOf(sequence, layer.result);
  COLLAGE_TRY_STATUS(transposed ? CheckPlanes(layer.window, result, data.shape) : CheckPlanes(layer.window, data.shape, result));
  return layer;
}

/// One window over the whole plane.
SlidingWindow WholePlane(const Shape& data) {
  const std::vector<int64_t> ones(data.size() - kFirstSpatial, 1);
  const std::vector<int64_t> zeros(ones.size(), 0);
  return {{data.begin() + kFirstSpatial, data.end()}, ones, ones, zeros, zeros};
}

/// Padding behind the data that ceil_mode adds so that the last window fits. Answers whether there is some.
bool PadForLastWindow(SlidingWindow& window, const Shape& data, const Shape& result) {
  bool padded = false;
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    const int64_t end = (result[kFirstSpatial + d] - 1) * window.stride[d] + window.kernel[d];
    const int64_t wanted = end - data[kFirstSpatial + d] - window.pad_begin[d];
    padded = padded || wanted > window.pad_end[d];
    window.pad_end[d] = std::max(window.pad_end[d], wanted);
  }
  return padded;
}

struct PoolingWindow {
  SlidingWindow window;
  bool counts_padding = false;
};

Result<PoolingWindow> ReadPoolingWindow(const std::string& name, const TensorType& data, const Attributes& attributes) {
  if (name.starts_with("nn.global_")) return PoolingWindow{WholePlane(data.shape)};
  if (name.ends_with("3d")) {
    const VolumePooling pooling = COLLAGE_TRY(ReadVolumePooling(data, attributes));
    return PoolingWindow{WindowOf(pooling.window), pooling.count_include_pad};
  }
  const Pooling pooling = COLLAGE_TRY(ReadPooling(data, attributes));
  return PoolingWindow{WindowOf(pooling.window), pooling.count_include_pad};
}

Result<Layer> ReadPoolingLayer(const OpSequence& sequence, const Step& step) {
  const TensorType& data = TypeOf(sequence, step.inputs[0]);
  const bool is_max = step.op->name.find("max_pool") != std::string::npos;
  PoolingWindow pooling = COLLAGE_TRY(ReadPoolingWindow(step.op->name, data, step.attributes));
  SlidingWindow& window = pooling.window;
  if (std::any_of(window.dilation.begin(), window.dilation.end(), [](int64_t dilation) { return dilation != 1; }))
    return Fail("cudnn: pooling has no dilation");
  const bool counts_padding = !is_max && pooling.counts_padding;
  if (PadForLastWindow(window, data.shape, ShapeOf(sequence, step.outputs[0])) && counts_padding)
    return Fail("cudnn: what ceil_mode adds would count as padding in an average");
  // cuDNN 9.19 takes these, and gives other numbers.
  if (counts_padding && !IsPaddedEvenly(window)) return Fail("cudnn: an average that counts padding is padded alike on both sides");
  COLLAGE_TRY_STATUS(CheckPlanes(window, data.shape, ShapeOf(sequence, step.outputs[0])));
  const Operation average = counts_padding ? Operation::kAveragePoolingWithPadding : Operation::kAveragePooling;
  return Layer{.operation = is_max ? Operation::kMaxPooling : average,
               .window = window,
               .data = step.inputs[0],
               .weight = std::nullopt,
               .result = step.outputs[0],
               .dtype = data.dtype};
}

Result<Layer> ReadOperation(const OpSequence& sequence) {
  const Step& step = sequence.steps[0];
  const std::string& name = step.op->name;
  if (name == "nn.conv2d" || name == "nn.conv3d") return ReadConvolutionLayer(sequence, step, false);
  if (name == "nn.conv2d_transpose" || name == "nn.conv3d_transpose") return ReadConvolutionLayer(sequence, step, true);
  if (name.find("_pool2d") != std::string::npos || name.find("_pool3d") != std::string::npos) return ReadPoolingLayer(sequence, step);
  return Fail("cudnn: " + name + " is neither a convolution nor a pooling");
}

/// Whether `added`, aligned at the last dimension, has one number for each channel of a tensor of this shape.
bool IsAlongChannels(const Shape& added, const Shape& shape) {
  if (ElementCount(added) != shape[kChannels] || added.size() > shape.size() || added.size() + kChannels < shape.size()) return false;
  return added[added.size() + kChannels - shape.size()] == shape[kChannels];
}

bool TakeBias(const OpSequence& sequence, const Step& step, Layer& layer) {
  if (layer.bias || (step.op->name != "add" && step.op->name != "nn.bias_add")) return false;
  const std::optional<size_t> other = OtherOperand(sequence, step, layer.result);
  if (!other || !sequence.values[*other].constant) return false;
  const Shape& shape = ShapeOf(sequence, layer.result);
  if (step.op->name == "nn.bias_add") {
    const int64_t axis = step.attributes.Int("axis", kChannels).value_or(0);
    if (step.inputs[0] != layer.result || (axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis) != kChannels) return false;
  } else if (!IsAlongChannels(ShapeOf(sequence, *other), shape)) {
    return false;
  }
  layer.bias = other;
  return true;
}

bool TakeAdded(const OpSequence& sequence, const Step& step, Layer& layer) {
  if (layer.added) return false;
  layer.added = AddedTensor(sequence, step, layer.result);
  return layer.added.has_value();
}

/// Takes the steps in front that add, and answers the rest. An activation that is written out reads its operand again, and may begin with
/// a sum, too.
std::span<const Step> TakeTerms(const OpSequence& sequence, std::span<const Step> steps, Layer& layer) {
  for (; !steps.empty(); steps = steps.subspan(1)) {
    if (IsReadIn(steps.subspan(1), layer.result)) break;
    if (!TakeBias(sequence, steps[0], layer) && !TakeAdded(sequence, steps[0], layer)) break;
    layer.result = steps[0].outputs[0];
  }
  return steps;
}

/// Of what one operator computes.
std::optional<Activation> ActivationOf(const Step& step) {
  const std::string& name = step.op->name;
  if (name == "nn.relu") return Activation{ActivationKind::kRelu};
  if (name == "sigmoid") return Activation{ActivationKind::kSigmoid};
  if (name == "tanh") return Activation{ActivationKind::kTanh};
  constexpr double kDefaultSlope = 0.01;  // of nn.leaky_relu
  if (name == "nn.leaky_relu") return Activation{ActivationKind::kRelu, step.attributes.Double("alpha", kDefaultSlope).value_or(0)};
  if (name != "clip" || step.attributes.Double("a_min", 0).value_or(-1) != 0) return std::nullopt;
  const double upper = step.attributes.Double("a_max", 0).value_or(0);
  if (!(upper > 0)) return std::nullopt;
  return Activation{ActivationKind::kRelu, 0, upper};
}

ActivationKind KindOf(collage::ActivationKind written_out) {
  switch (written_out) {
    case collage::ActivationKind::kSwish:
      return ActivationKind::kSwish;
    case collage::ActivationKind::kGeluByErf:
      return ActivationKind::kGeluByErf;
    case collage::ActivationKind::kGeluByTanh:
      return ActivationKind::kGeluByTanh;
    default:
      return ActivationKind::kNone;
  }
}

std::span<const Step> TakeActivation(const OpSequence& sequence, std::span<const Step> steps, Layer& layer) {
  if (steps.empty()) return steps;
  if (const std::optional<WrittenOutActivation> found = RecogniseActivation(sequence, steps, layer.result)) {
    layer.activation.kind = KindOf(found->activation);
    if (layer.activation.kind == ActivationKind::kNone) return steps;
    layer.result = found->result;
    return steps.subspan(found->steps);
  }
  const std::optional<Activation> activation = ActivationOf(steps[0]);
  if (!activation || steps[0].inputs[0] != layer.result || IsReadIn(steps.subspan(1), layer.result)) return steps;
  layer.activation = *activation;
  layer.result = steps[0].outputs[0];
  return steps.subspan(1);
}

}  // namespace

Result<Layer> RecogniseLayer(const OpSequence& sequence) {
  COLLAGE_TRY_STATUS(CheckFloatTensors("cudnn", sequence));
  Layer layer = COLLAGE_TRY(ReadOperation(sequence));
  std::span<const Step> rest = std::span(sequence.steps).subspan(1);
  if (layer.weight) rest = TakeActivation(sequence, TakeTerms(sequence, rest, layer), layer);
  if (!rest.empty())
    return Fail(
        "cudnn: behind a convolution only a bias, a tensor of its shape and one activation are computed, behind a pooling nothing: " +
        rest[0].op->name + " is not");
  if (layer.result != sequence.results[0]) return Fail("cudnn: the result is not the end of the layer");
  return layer;
}

}  // namespace collage::cudnn
