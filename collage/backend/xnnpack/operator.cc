#include "collage/backend/xnnpack/operator.h"

#include <string>
#include <utility>
#include <vector>

#include "collage/op/window.h"

namespace collage::xnnpack {
namespace {

uint32_t Narrow(int64_t number) { return static_cast<uint32_t>(number); }
size_t Count(int64_t number) { return static_cast<size_t>(number); }

// From [outputs][inputs of a group][height][width] to [outputs][height][width][inputs of a group].
std::vector<float> ChannelsLast(const Tensor& weights) {
  const Shape& shape = weights.type().shape;
  const float* from = weights.Data<float>();
  const int64_t taps = shape[2] * shape[3];
  std::vector<float> to(Count(weights.type().ElementCount()));
  float* next = to.data();
  for (int64_t output = 0; output < shape[0]; ++output, from += shape[1] * taps) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t input = 0; input < shape[1]; ++input) *next++ = from[input * taps + tap];
    }
  }
  return to;
}

/// What all layers are made from.
struct Source {
  const OpSequence& sequence;
  const Layer& layer;

  [[nodiscard]] const TensorType& Type(size_t input) const { return sequence.values[layer.base->inputs[input]].type; }
  [[nodiscard]] const Tensor& Weights() const { return *sequence.values[layer.base->inputs[1]].constant; }
  [[nodiscard]] const float* Bias() const { return layer.bias ? sequence.values[*layer.bias].constant->Data<float>() : nullptr; }
};

Operator Owned(xnn_operator_t handle) {
  Operator made;
  made.handle.reset(handle);
  return made;
}

Result<Operator> Finish(const std::string& name, xnn_status status, xnn_operator_t handle,
                        std::function<xnn_status(xnn_operator_t, const float*, float*, pthreadpool_t)> set_up) {
  if (status != xnn_status_success) return Fail("XNNPACK makes no " + name + ": " + Describe(status));
  Operator made = Owned(handle);
  made.set_up = [handle, set_up = std::move(set_up)](const float* data, float* result, pthreadpool_t pool) {
    return set_up(handle, data, result, pool);
  };
  return made;
}

Result<Operator> MakeConvolution(const Source& from) {
  const Convolution c = COLLAGE_TRY(ReadConvolution(from.Type(0), from.Type(1), from.layer.base->attributes));
  const Window& w = c.window;
  const std::vector<float> weights = ChannelsLast(from.Weights());
  xnn_operator_t handle = nullptr;
  const xnn_status status = xnn_create_convolution2d_nhwc_f32(
      Narrow(w.pad_begin[0]), Narrow(w.pad_end[1]), Narrow(w.pad_end[0]), Narrow(w.pad_begin[1]), Narrow(w.kernel[0]), Narrow(w.kernel[1]),
      Narrow(w.stride[0]), Narrow(w.stride[1]), Narrow(w.dilation[0]), Narrow(w.dilation[1]), Narrow(c.groups),
      Count(c.input_channels / c.groups), Count(c.output_channels / c.groups), Count(c.input_channels), Count(c.output_channels),
      weights.data(), from.Bias(), from.layer.low, from.layer.high, /*flags=*/0, &handle);
  return Finish("convolution", status, handle, [c](xnn_operator_t op, const float* data, float* result, pthreadpool_t pool) {
    return xnn_setup_convolution2d_nhwc_f32(op, Count(c.batch), Count(c.input[0]), Count(c.input[1]), data, result, pool);
  });
}

Result<Operator> MakeDense(const Source& from) {
  const Shape& weights = from.Type(1).shape;
  const int64_t rows = from.Type(0).ElementCount() / weights[1];
  xnn_operator_t handle = nullptr;
  const xnn_status status =
      xnn_create_fully_connected_nc_f32(Count(weights[1]), Count(weights[0]), Count(weights[1]), Count(weights[0]),
                                        from.Weights().Data<float>(), from.Bias(), from.layer.low, from.layer.high, /*flags=*/0, &handle);
  return Finish("dense layer", status, handle, [rows](xnn_operator_t op, const float* data, float* result, pthreadpool_t pool) {
    return xnn_setup_fully_connected_nc_f32(op, Count(rows), data, result, pool);
  });
}

Result<Operator> MakePooling(const Source& from) {
  const Pooling p = COLLAGE_TRY(ReadPooling(from.Type(0), from.layer.base->attributes));
  const Window& w = p.window;
  const size_t channels = Count(p.channels);
  xnn_operator_t handle = nullptr;
  if (from.layer.base->op->name == "nn.max_pool2d") {
    const xnn_status status = xnn_create_max_pooling2d_nhwc_f32(
        Narrow(w.pad_begin[0]), Narrow(w.pad_end[1]), Narrow(w.pad_end[0]), Narrow(w.pad_begin[1]), Narrow(w.kernel[0]),
        Narrow(w.kernel[1]), Narrow(w.stride[0]), Narrow(w.stride[1]), Narrow(w.dilation[0]), Narrow(w.dilation[1]), channels, channels,
        channels, from.layer.low, from.layer.high, /*flags=*/0, &handle);
    return Finish("max pooling", status, handle, [p](xnn_operator_t op, const float* data, float* result, pthreadpool_t pool) {
      return xnn_setup_max_pooling2d_nhwc_f32(op, Count(p.batch), Count(p.input[0]), Count(p.input[1]), data, result, pool);
    });
  }
  const xnn_status status = xnn_create_average_pooling2d_nhwc_f32(
      Narrow(w.pad_begin[0]), Narrow(w.pad_end[1]), Narrow(w.pad_end[0]), Narrow(w.pad_begin[1]), Narrow(w.kernel[0]), Narrow(w.kernel[1]),
      Narrow(w.stride[0]), Narrow(w.stride[1]), channels, channels, channels, from.layer.low, from.layer.high, /*flags=*/0, &handle);
  return Finish("average pooling", status, handle, [p](xnn_operator_t op, const float* data, float* result, pthreadpool_t pool) {
    return xnn_setup_average_pooling2d_nhwc_f32(op, Count(p.batch), Count(p.input[0]), Count(p.input[1]), data, result, pool);
  });
}

Result<Operator> MakeGlobalPooling(const Source& from) {
  const Shape& data = from.Type(0).shape;
  xnn_operator_t handle = nullptr;
  const xnn_status status = xnn_create_global_average_pooling_nwc_f32(Count(data[1]), Count(data[1]), Count(data[1]), from.layer.low,
                                                                      from.layer.high, /*flags=*/0, &handle);
  return Finish("global average pooling", status, handle, [data](xnn_operator_t op, const float* from, float* to, pthreadpool_t pool) {
    return xnn_setup_global_average_pooling_nwc_f32(op, Count(data[0]), Count(data[2] * data[3]), from, to, pool);
  });
}

}  // namespace

Result<Operator> MakeOperator(const OpSequence& sequence, const Layer& layer) {
  const Source source{sequence, layer};
  const std::string& name = layer.base->op->name;
  if (name == "nn.conv2d") return MakeConvolution(source);
  if (name == "nn.dense") return MakeDense(source);
  if (name == "nn.global_avg_pool2d") return MakeGlobalPooling(source);
  return MakePooling(source);
}

const char* Describe(xnn_status status) {
  switch (status) {
    case xnn_status_success:
      return "success";
    case xnn_status_uninitialized:
      return "the library is not initialized";
    case xnn_status_invalid_parameter:
      return "a parameter is invalid";
    case xnn_status_invalid_state:
      return "the state is invalid";
    case xnn_status_unsupported_parameter:
      return "a parameter is not supported";
    case xnn_status_unsupported_hardware:
      return "the processor is not supported";
    case xnn_status_out_of_memory:
      return "out of memory";
  }
  return "an unknown status";
}

}  // namespace collage::xnnpack
