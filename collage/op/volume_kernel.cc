#include <limits>

#include "collage/op/axis_view.h"
#include "collage/op/product_kernel.h"
#include "collage/op/volume.h"
#include "collage/support/check.h"

namespace collage {

using Inputs = std::span<const Tensor>;
using Outputs = std::span<Tensor>;

namespace {

int64_t Count(const Triple& extents) { return extents[0] * extents[1] * extents[2]; }

/// The three coordinates of a row-major place.
Triple Coordinates(int64_t place, const Triple& extents) {
  return {place / (extents[1] * extents[2]), place / extents[2] % extents[1], place % extents[2]};
}

/// The place in the input that a tap of the window meets at a place of the output; -1 in the padding or between the steps.
int64_t InputPlace(const VolumeConvolution& c, bool transposed, const Triple& output, const Triple& tap) {
  int64_t place = 0;
  for (size_t d = 0; d < 3; ++d) {
    const int64_t offset = tap[d] * c.window.dilation[d] - c.window.pad_begin[d];
    int64_t position = output[d] * c.window.stride[d] + offset;
    if (transposed) {
      position = output[d] - offset;
      if (position < 0 || position % c.window.stride[d] != 0) return -1;
      position /= c.window.stride[d];
    }
    if (position < 0 || position >= c.input[d]) return -1;
    place = place * c.input[d] + position;
  }
  return place;
}

template <class T>
void Convolve(const VolumeConvolution& c, bool transposed, const T* data, const T* weight, T* result) {
  const int64_t taps = c.window.Taps();
  const int64_t group_inputs = c.input_channels / c.groups;
  const int64_t group_outputs = c.output_channels / c.groups;
  const int64_t input_volume = Count(c.input);
  const int64_t output_volume = Count(c.output);
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t group = 0; group < c.groups; ++group) {
      const T* group_data = data + (n * c.input_channels + group * group_inputs) * input_volume;
      T* group_result = result + (n * c.output_channels + group * group_outputs) * output_volume;
      BlockedProduct product{group_outputs, output_volume, group_inputs * taps, {}, {}, {}};
      product.left = [&](int64_t channel, int64_t first, int64_t count, double* out) {
        for (int64_t k = first; k < first + count; ++k) {
          const int64_t place = transposed ? ((group * group_inputs + k / taps) * group_outputs + channel) * taps + k % taps
                                           : (group * group_outputs + channel) * group_inputs * taps + k;
          *out++ = static_cast<double>(weight[place]);
        }
      };
      product.right = [&](int64_t k, int64_t first, int64_t count, double* out) {
        const Triple tap = Coordinates(k % taps, c.window.kernel);
        for (int64_t i = first; i < first + count; ++i) {
          const int64_t place = InputPlace(c, transposed, Coordinates(i, c.output), tap);
          *out++ = place < 0 ? 0.0 : static_cast<double>(group_data[k / taps * input_volume + place]);
        }
      };
      product.store = [&](int64_t channel, int64_t first, int64_t count, const double* values) {
        T* target = group_result + channel * output_volume + first;
        for (int64_t i = 0; i < count; ++i) target[i] = Rounded<T>(values[i]);
      };
      Compute(product);
    }
  }
}

void ConvolveTensors(Inputs inputs, const Attributes& attributes, Outputs outputs, bool transposed) {
  const Result<VolumeConvolution> c = ReadVolumeConvolution(inputs[0].type(), inputs[1].type(), attributes, transposed);
  COLLAGE_CHECK(c.has_value());
  const auto convolve = [&](auto element) {
    using T = decltype(element);
    Convolve(*c, transposed, inputs[0].Data<T>(), inputs[1].Data<T>(), outputs[0].MutableData<T>());
  };
  inputs[0].dtype() == DType::kInt32 ? convolve(int32_t{}) : VisitFloatType(inputs[0].dtype(), convolve);
}

/// Calls `visit(element)` for each element of a volume under the window at an output position.
template <class T, class Visitor>
void VisitWindow(const VolumePooling& p, const T* volume, const Triple& output, Visitor&& visit) {
  for (int64_t k = 0; k < p.window.Taps(); ++k) {
    const Triple tap = Coordinates(k, p.window.kernel);
    int64_t place = 0;
    bool inside = true;
    for (size_t d = 0; d < 3; ++d) {
      const int64_t position = output[d] * p.window.stride[d] - p.window.pad_begin[d] + tap[d] * p.window.dilation[d];
      inside = inside && position >= 0 && position < p.input[d];
      place = place * p.input[d] + position;
    }
    if (inside) visit(volume[place]);
  }
}

template <class T, class Function>
void ForEachOutput(const VolumePooling& p, const Tensor& data, Tensor& result, Function&& element) {
  const T* volume = data.Data<T>();
  T* target = result.MutableData<T>();
  for (int64_t i = 0; i < p.batch * p.channels; ++i, volume += Count(p.input)) {
    for (int64_t o = 0; o < Count(p.output); ++o) *target++ = element(volume, Coordinates(o, p.output));
  }
}

VolumePooling PoolingOf(const Tensor& data, const Attributes& attributes) {
  const Result<VolumePooling> pooling = ReadVolumePooling(data.type(), attributes);
  COLLAGE_CHECK(pooling.has_value());
  return *pooling;
}

}  // namespace

void ReferenceConv3d(Inputs inputs, const Attributes& attributes, Outputs outputs) { ConvolveTensors(inputs, attributes, outputs, false); }

void ReferenceConv3dTranspose(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  ConvolveTensors(inputs, attributes, outputs, true);
}

void ReferenceMaxPool3d(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  const VolumePooling p = PoolingOf(inputs[0], attributes);
  VisitNumberType(inputs[0].dtype(), [&](auto type) {
    using T = decltype(type);
    constexpr T lowest = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
    ForEachOutput<T>(p, inputs[0], outputs[0], [&](const T* volume, const Triple& output) {
      T largest = lowest;
      VisitWindow(p, volume, output, [&](T x) {
        if (x > largest || x != x) largest = x;
      });
      return largest;
    });
  });
}

void ReferenceAveragePool3d(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  const VolumePooling p = PoolingOf(inputs[0], attributes);
  VisitFloatType(inputs[0].dtype(), [&](auto type) {
    using T = decltype(type);
    ForEachOutput<T>(p, inputs[0], outputs[0], [&](const T* volume, const Triple& output) {
      double sum = 0;
      int64_t count = 0;
      VisitWindow(p, volume, output, [&](T x) {
        sum += static_cast<double>(x);
        ++count;
      });
      if (p.count_include_pad) count = p.window.Taps();
      return count == 0 ? T{} : static_cast<T>(sum / static_cast<double>(count));
    });
  });
}

}  // namespace collage
