#include "collage/backend/cudnn/graph.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <numeric>

namespace collage::cudnn {
namespace {

/// Sums are in float32 whatever the tensors are stored as.
constexpr cudnnDataType_t kComputed = CUDNN_DATA_FLOAT;

cudnnDataType_t StoredType(DType dtype) { return dtype == DType::kFloat16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT; }

/// In elements.
std::vector<int64_t> StridesOf(const Shape& shape, bool channels_last) {
  if (!channels_last) return RowMajorStrides(shape);
  Shape moved = shape;
  std::rotate(moved.begin() + 1, moved.begin() + 2, moved.end());
  std::vector<int64_t> strides = RowMajorStrides(moved);
  std::rotate(strides.begin() + 1, strides.end() - 1, strides.end());
  return strides;
}

cudnnPointwiseMode_t ModeOf(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kRelu:
      return CUDNN_POINTWISE_RELU_FWD;
    case ActivationKind::kSigmoid:
      return CUDNN_POINTWISE_SIGMOID_FWD;
    case ActivationKind::kTanh:
      return CUDNN_POINTWISE_TANH_FWD;
    case ActivationKind::kSwish:
      return CUDNN_POINTWISE_SWISH_FWD;
    case ActivationKind::kGeluByErf:
      return CUDNN_POINTWISE_GELU_FWD;
    case ActivationKind::kGeluByTanh:
      return CUDNN_POINTWISE_GELU_APPROX_TANH_FWD;
    case ActivationKind::kNone:
      break;
  }
  return CUDNN_POINTWISE_IDENTITY;
}

cudnnResampleMode_t ModeOf(Operation operation) {
  switch (operation) {
    case Operation::kAveragePooling:
      return CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING;
    case Operation::kAveragePoolingWithPadding:
      return CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING;
    default:
      return CUDNN_RESAMPLE_MAXPOOL;
  }
}

class GraphMaker {
 public:
  GraphMaker(const OpSequence& sequence, const Layer& layer, bool channels_last)
      : sequence_(sequence), layer_(layer), channels_last_(channels_last) {}

  Result<Graph> Make(cudnnHandle_t handle) {
    COLLAGE_TRY_STATUS(layer_.weight ? AddConvolution() : AddPooling());
    std::vector<const Descriptor*> operations;
    for (const Descriptor& operation : operations_) operations.push_back(&operation);
    Descriptor graph = COLLAGE_TRY(DescriptorBuilder(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
                                       .Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle)
                                       .Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations)
                                       .Finalised());
    std::vector<Descriptor> parts;
    for (std::deque<Descriptor>* list : {&parts_, &operations_}) std::move(list->begin(), list->end(), std::back_inserter(parts));
    return Graph{std::move(parts), std::move(graph)};
  }

 private:
  const Shape& ShapeOf(size_t value) const { return sequence_.values[value].type.shape; }

  Result<const Descriptor*> Keep(Result<Descriptor> part) {
    parts_.push_back(COLLAGE_TRY(std::move(part)));
    return &parts_.back();
  }

  Result<const Descriptor*> MakeTensor(int64_t id, const Shape& shape) {
    // Addresses of tensors are multiples of 64; this is what the library's widest loads want.
    constexpr int64_t kAlignment = 16;
    const bool is_on_the_way = id >= kFirstOnTheWay;
    return Keep(DescriptorBuilder(CUDNN_BACKEND_TENSOR_DESCRIPTOR)
                    .Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
                    .Set(CUDNN_ATTR_TENSOR_DATA_TYPE, is_on_the_way ? kComputed : StoredType(layer_.dtype))
                    .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, shape)
                    .Set(CUDNN_ATTR_TENSOR_STRIDES, StridesOf(shape, channels_last_))
                    .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment)
                    .Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_on_the_way)
                    .Finalised());
  }

  Result<const Descriptor*> MakeStepOnTheWay() { return MakeTensor(next_on_the_way_++, ShapeOf(layer_.result)); }

  Status AddConvolution() {
    const Descriptor* data = COLLAGE_TRY(MakeTensor(kData, ShapeOf(layer_.data)));
    const Descriptor* weight = COLLAGE_TRY(MakeTensor(kWeight, ShapeOf(*layer_.weight)));
    const Descriptor* result = COLLAGE_TRY(MakeTensor(kResult, ShapeOf(layer_.result)));
    const Descriptor* current = layer_.HasTail() ? COLLAGE_TRY(MakeStepOnTheWay()) : result;
    COLLAGE_TRY_STATUS(Convolve(data, weight, current));
    return layer_.HasTail() ? AddTail(current, result) : Status();
  }

  Status Convolve(const Descriptor* data, const Descriptor* weight, const Descriptor* result) {
    const SlidingWindow& window = layer_.window;
    const Descriptor* convolution = COLLAGE_TRY(Keep(DescriptorBuilder(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
                                                         .Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, kComputed)
                                                         .Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
                                                         .Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, Dimensions())
                                                         .Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, window.dilation)
                                                         .Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, window.stride)
                                                         .Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, window.pad_begin)
                                                         .Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, window.pad_end)
                                                         .Finalised()));
    constexpr float kAll = 1;
    constexpr float kNothing = 0;
    if (layer_.operation == Operation::kConvolution) {
      operations_.push_back(COLLAGE_TRY(DescriptorBuilder(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
                                            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, *convolution)
                                            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, *data)
                                            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, *weight)
                                            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, *result)
                                            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, kAll)
                                            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, kNothing)
                                            .Finalised()));
      return {};
    }
    operations_.push_back(COLLAGE_TRY(DescriptorBuilder(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
                                          .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, *convolution)
                                          .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, *data)
                                          .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, *weight)
                                          .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, *result)
                                          .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, kAll)
                                          .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, kNothing)
                                          .Finalised()));
    return {};
  }

  // Compiled kernels of the library know one form of a tail: what is added, then the bias, then the activation. Forms without a bias, or in
  // another order, are left to kernels that the library generates, which there are for few of the others.
  Status AddTail(const Descriptor* current, const Descriptor* result) {
    if (layer_.added) {
      const Descriptor* added = COLLAGE_TRY(MakeTensor(kAdded, ShapeOf(layer_.result)));
      const Descriptor* sum = COLLAGE_TRY(MakeStepOnTheWay());
      COLLAGE_TRY_STATUS(AddPointwise({CUDNN_POINTWISE_ADD}, current, added, sum));
      current = sum;
    }
    const bool is_activated = layer_.activation.kind != ActivationKind::kNone;
    Shape along_channels(ShapeOf(layer_.result).size(), 1);
    along_channels[1] = ShapeOf(layer_.result)[1];
    const Descriptor* bias = COLLAGE_TRY(MakeTensor(kBias, along_channels));
    const Descriptor* biased = is_activated ? COLLAGE_TRY(MakeStepOnTheWay()) : result;
    COLLAGE_TRY_STATUS(AddPointwise({CUDNN_POINTWISE_ADD}, current, bias, biased));
    const Activation& activation = layer_.activation;
    if (!is_activated) return {};
    return AddPointwise({ModeOf(activation.kind), activation.slope, activation.upper}, biased, nullptr, result);
  }

  struct PointwiseMode {
    cudnnPointwiseMode_t mode;
    double slope = 0;
    std::optional<double> upper = {};
  };

  Status AddPointwise(const PointwiseMode& of, const Descriptor* a, const Descriptor* b, const Descriptor* result) {
    DescriptorBuilder function(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    function.Set(CUDNN_ATTR_POINTWISE_MODE, of.mode).Set(CUDNN_ATTR_POINTWISE_MATH_PREC, kComputed);
    if (of.mode == CUDNN_POINTWISE_RELU_FWD) function.Set(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_PROPAGATE_NAN);
    if (of.mode == CUDNN_POINTWISE_SWISH_FWD) function.Set(CUDNN_ATTR_POINTWISE_SWISH_BETA, 1.0);
    // Bounds that bound nothing are not set: with an upper one the library takes it for another activation.
    if (of.slope != 0) function.Set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, of.slope);
    if (of.upper) function.Set(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, *of.upper);
    const Descriptor* made = COLLAGE_TRY(Keep(function.Finalised()));
    DescriptorBuilder operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, *made).Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *a);
    if (b) operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
    operations_.push_back(COLLAGE_TRY(operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *result).Finalised()));
    return {};
  }

  Status AddPooling() {
    const Descriptor* data = COLLAGE_TRY(MakeTensor(kData, ShapeOf(layer_.data)));
    const Descriptor* result = COLLAGE_TRY(MakeTensor(kResult, ShapeOf(layer_.result)));
    const SlidingWindow& window = layer_.window;
    const auto whole = [](const std::vector<int64_t>& numbers) {
      std::vector<cudnnFraction_t> fractions;
      for (const int64_t number : numbers) fractions.push_back({number, 1});
      return fractions;
    };
    const cudnnPaddingMode_t padding = layer_.operation == Operation::kMaxPooling ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD;
    const Descriptor* pooling = COLLAGE_TRY(Keep(DescriptorBuilder(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR)
                                                     .Set(CUDNN_ATTR_RESAMPLE_MODE, ModeOf(layer_.operation))
                                                     .Set(CUDNN_ATTR_RESAMPLE_COMP_TYPE, kComputed)
                                                     .Set(CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_PROPAGATE_NAN)
                                                     .Set(CUDNN_ATTR_RESAMPLE_PADDING_MODE, padding)
                                                     .Set(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, Dimensions())
                                                     .Set(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, whole(window.kernel))
                                                     .Set(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, whole(window.pad_begin))
                                                     .Set(CUDNN_ATTR_RESAMPLE_POST_PADDINGS, whole(window.pad_end))
                                                     .Set(CUDNN_ATTR_RESAMPLE_STRIDES, whole(window.stride))
                                                     .Finalised()));
    operations_.push_back(COLLAGE_TRY(DescriptorBuilder(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR)
                                          .Set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, *pooling)
                                          .Set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, *data)
                                          .Set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, *result)
                                          .Finalised()));
    return {};
  }

  [[nodiscard]] int64_t Dimensions() const { return static_cast<int64_t>(layer_.window.kernel.size()); }

  const OpSequence& sequence_;
  const Layer& layer_;
  bool channels_last_;
  int64_t next_on_the_way_ = kFirstOnTheWay;
  // Deques, because operations refer to what is kept.
  std::deque<Descriptor> parts_;
  std::deque<Descriptor> operations_;
};

}  // namespace

std::vector<int64_t> GivenTensors(const Layer& layer) {
  std::vector<int64_t> ids{kData};
  if (layer.weight) ids.push_back(kWeight);
  if (layer.added) ids.push_back(kAdded);
  if (layer.HasTail()) ids.push_back(kBias);
  ids.push_back(kResult);
  return ids;
}

Layout LayoutOf(const Shape& shape, bool channels_last) {
  constexpr size_t kOfImages = 4;
  if (!channels_last || shape.size() < kOfImages) return {};
  const int64_t positions = std::accumulate(shape.begin() + 2, shape.end(), int64_t{1}, std::multiplies<>());
  if (shape[1] == 1 || positions == 1) return {};
  return Layout::Of(shape.size() == kOfImages ? "acdb" : "acdeb");
}

Result<Graph> MakeGraph(const OpSequence& sequence, const Layer& layer, bool channels_last, cudnnHandle_t handle) {
  return GraphMaker(sequence, layer, channels_last).Make(handle);
}

}  // namespace collage::cudnn
