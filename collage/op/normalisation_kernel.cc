#include <algorithm>
#include <cmath>

#include "collage/op/axis_view.h"
#include "collage/op/kernels.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

/// y = x * factor + offset for one channel.
struct Affine {
  double factor;
  double offset;
};

/// gamma and beta with the switches "scale" and "center", as doubles.
template <class T>
struct Parameters {
  const T* gamma;
  const T* beta;
  double epsilon;

  Parameters(Inputs inputs, const Attributes& attributes)
      : gamma(BoolAttribute(attributes, "scale", true) ? inputs[1].Data<T>() : nullptr),
        beta(BoolAttribute(attributes, "center", true) ? inputs[2].Data<T>() : nullptr),
        epsilon(DoubleAttribute(attributes, "epsilon", 1e-5)) {}

  [[nodiscard]] Affine For(int64_t channel, double mean, double variance) const {
    const double factor = (gamma ? static_cast<double>(gamma[channel]) : 1.0) / std::sqrt(variance + epsilon);
    return {factor, (beta ? static_cast<double>(beta[channel]) : 0.0) - mean * factor};
  }
};

struct Moments {
  double mean;
  double variance;
};

/// Of count runs of `inner` elements, runs being `stride` apart; two passes, since the one-pass formula cancels.
template <class T>
Moments ComputeMoments(const T* data, int64_t runs, int64_t stride, int64_t inner) {
  double sum = 0;
  for (int64_t run = 0; run < runs; ++run) {
    for (int64_t i = 0; i < inner; ++i) sum += static_cast<double>(data[run * stride + i]);
  }
  const auto count = static_cast<double>(runs * inner);
  const double mean = sum / count;
  double squares = 0;
  for (int64_t run = 0; run < runs; ++run) {
    for (int64_t i = 0; i < inner; ++i) {
      const double distance = static_cast<double>(data[run * stride + i]) - mean;
      squares += distance * distance;
    }
  }
  return {mean, squares / count};
}

template <class T>
void Apply(const Affine& affine, const T* data, T* result, int64_t count) {
  for (int64_t i = 0; i < count; ++i) result[i] = static_cast<T>(static_cast<double>(data[i]) * affine.factor + affine.offset);
}

/// Normalises each group of channels of each element of the batch (dimension 0); `groups` divides the channels.
template <class T>
void NormaliseGroups(Inputs inputs, const Attributes& attributes, int64_t groups, Tensor& output) {
  const Shape& shape = inputs[0].shape();
  const AxisView view(shape, AxisAttribute(attributes, "axis", 1, shape.size()));
  if (output.ElementCount() == 0) return;
  const Parameters<T> parameters(inputs, attributes);
  const T* data = inputs[0].Data<T>();
  T* result = output.MutableData<T>();
  // [batch, middle, channels, inner]: the statistics of a group run over middle, its channels and inner.
  const int64_t batch = shape[0];
  const int64_t middle = view.outer / batch;
  const int64_t channels = view.extent / groups;
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t start = (n * middle * view.extent + group * channels) * view.inner;
      const Moments moments = ComputeMoments(data + start, middle, view.extent * view.inner, channels * view.inner);
      for (int64_t m = 0; m < middle; ++m) {
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t place = start + (m * view.extent + c) * view.inner;
          Apply(parameters.For(group * channels + c, moments.mean, moments.variance), data + place, result + place, view.inner);
        }
      }
    }
  }
}

template <class T>
void LayerNorm(Inputs inputs, const Attributes& attributes, Tensor& output) {
  const AxisView view(inputs[0].shape(), AxisAttribute(attributes, "axis", -1, inputs[0].shape().size()));
  const Parameters<T> parameters(inputs, attributes);
  const T* data = inputs[0].Data<T>();
  T* result = output.MutableData<T>();
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    for (int64_t inner = 0; inner < view.inner; ++inner) {
      const int64_t start = outer * view.extent * view.inner + inner;
      const Moments moments = ComputeMoments(data + start, view.extent, view.inner, 1);
      for (int64_t c = 0; c < view.extent; ++c) {
        const int64_t place = start + c * view.inner;
        Apply(parameters.For(c, moments.mean, moments.variance), data + place, result + place, 1);
      }
    }
  }
}

template <class T>
void BatchNorm(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  const AxisView view(inputs[0].shape(), AxisAttribute(attributes, "axis", 1, inputs[0].shape().size()));
  const Parameters<T> parameters(inputs, attributes);
  const T* data = inputs[0].Data<T>();
  const T* mean = inputs[3].Data<T>();
  const T* variance = inputs[4].Data<T>();
  T* result = outputs[0].MutableData<T>();
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    for (int64_t c = 0; c < view.extent; ++c) {
      const int64_t place = (outer * view.extent + c) * view.inner;
      Apply(parameters.For(c, static_cast<double>(mean[c]), static_cast<double>(variance[c])), data + place, result + place, view.inner);
    }
  }
  std::copy(mean, mean + view.extent, outputs[1].MutableData<T>());
  std::copy(variance, variance + view.extent, outputs[2].MutableData<T>());
}

template <class T>
void Lrn(Inputs inputs, const Attributes& attributes, Tensor& output) {
  const AxisView view(inputs[0].shape(), AxisAttribute(attributes, "axis", 1, inputs[0].shape().size()));
  const int64_t size = IntAttribute(attributes, "size", 5);
  const double alpha = DoubleAttribute(attributes, "alpha", 1e-5) / static_cast<double>(size);
  const double beta = DoubleAttribute(attributes, "beta", 0.75);
  const double bias = DoubleAttribute(attributes, "bias", 2);
  const T* data = inputs[0].Data<T>();
  T* result = output.MutableData<T>();
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    for (int64_t c = 0; c < view.extent; ++c) {
      const int64_t first = std::max<int64_t>(0, c - (size - 1) / 2);
      const int64_t last = std::min(view.extent - 1, c + size / 2);
      for (int64_t inner = 0; inner < view.inner; ++inner) {
        const int64_t start = outer * view.extent * view.inner + inner;
        double squares = 0;
        for (int64_t k = first; k <= last; ++k) {
          const auto x = static_cast<double>(data[start + k * view.inner]);
          squares += x * x;
        }
        const int64_t place = start + c * view.inner;
        result[place] = static_cast<T>(static_cast<double>(data[place]) / std::pow(bias + alpha * squares, beta));
      }
    }
  }
}

}  // namespace

void ReferenceBatchNorm(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  VisitFloatType(inputs[0].dtype(), [&](auto element) { BatchNorm<decltype(element)>(inputs, attributes, outputs); });
}

void ReferenceLayerNorm(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  VisitFloatType(inputs[0].dtype(), [&](auto element) { LayerNorm<decltype(element)>(inputs, attributes, outputs[0]); });
}

void ReferenceInstanceNorm(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  const Shape& shape = inputs[0].shape();
  const int64_t channels = shape[AxisAttribute(attributes, "axis", 1, shape.size())];
  VisitFloatType(inputs[0].dtype(), [&](auto element) { NormaliseGroups<decltype(element)>(inputs, attributes, channels, outputs[0]); });
}

void ReferenceGroupNorm(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  const int64_t groups = IntAttribute(attributes, "num_groups", 1);
  VisitFloatType(inputs[0].dtype(), [&](auto element) { NormaliseGroups<decltype(element)>(inputs, attributes, groups, outputs[0]); });
}

void ReferenceLrn(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  VisitFloatType(inputs[0].dtype(), [&](auto element) { Lrn<decltype(element)>(inputs, attributes, outputs[0]); });
}

}  // namespace collage
