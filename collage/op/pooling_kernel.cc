#include <algorithm>
#include <limits>
#include <type_traits>

#include "collage/op/axis_view.h"
#include "collage/op/kernels.h"
#include "collage/op/window.h"
#include "collage/support/check.h"

namespace collage {
namespace {

/// Calls `visit(element)` for each element of the plane under the window at an output position, in row-major order.
template <class T, class Visitor>
void VisitWindow(const Pooling& p, const T* plane, int64_t oy, int64_t ox, Visitor&& visit) {
  const int64_t top = oy * p.window.stride[0] - p.window.pad_begin[0];
  const int64_t left = ox * p.window.stride[1] - p.window.pad_begin[1];
  for (int64_t ky = 0; ky < p.window.kernel[0]; ++ky) {
    const int64_t y = top + ky * p.window.dilation[0];
    if (y < 0 || y >= p.input[0]) continue;
    for (int64_t kx = 0; kx < p.window.kernel[1]; ++kx) {
      const int64_t x = left + kx * p.window.dilation[1];
      if (x >= 0 && x < p.input[1]) visit(plane[y * p.input[1] + x]);
    }
  }
}

/// Taps of the window at output position `o` that lie on the padded data.
int64_t PaddedTaps(const Pooling& p, size_t d, int64_t o) {
  const int64_t start = o * p.window.stride[d] - p.window.pad_begin[d];
  int64_t taps = 0;
  for (int64_t k = 0; k < p.window.kernel[d]; ++k) taps += start + k * p.window.dilation[d] < p.input[d] + p.window.pad_end[d];
  return taps;
}

/// Calls `element(plane, oy, ox)` for each output element and stores what it gives.
template <class T, class Function>
void ForEachOutput(const Pooling& p, const Tensor& data, Tensor& result, Function&& element) {
  const T* plane = data.Data<T>();
  T* target = result.MutableData<T>();
  for (int64_t i = 0; i < p.batch * p.channels; ++i, plane += p.input[0] * p.input[1]) {
    for (int64_t oy = 0; oy < p.output[0]; ++oy) {
      for (int64_t ox = 0; ox < p.output[1]; ++ox) *target++ = element(plane, oy, ox);
    }
  }
}

template <class T>
constexpr T Lowest() {
  if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::lowest();
}

template <class T>
void MaxPool(const Pooling& p, const Tensor& data, Tensor& result) {
  ForEachOutput<T>(p, data, result, [&](const T* plane, int64_t oy, int64_t ox) {
    T largest = Lowest<T>();
    VisitWindow(p, plane, oy, ox, [&](T x) {
      if (x > largest || x != x) largest = x;
    });
    return largest;
  });
}

template <class T>
void AveragePool(const Pooling& p, const Tensor& data, Tensor& result) {
  ForEachOutput<T>(p, data, result, [&](const T* plane, int64_t oy, int64_t ox) {
    double sum = 0;
    int64_t count = 0;
    VisitWindow(p, plane, oy, ox, [&](T x) {
      sum += static_cast<double>(x);
      ++count;
    });
    if (p.count_include_pad) count = PaddedTaps(p, 0, oy) * PaddedTaps(p, 1, ox);
    return count == 0 ? T{} : static_cast<T>(sum / static_cast<double>(count));
  });
}

Pooling PoolingOf(const Tensor& data, const Attributes& attributes) {
  const Result<Pooling> pooling = ReadPooling(data.type(), attributes);
  COLLAGE_CHECK(pooling.has_value());
  return *pooling;
}

/// A window as large as the plane.
Pooling GlobalPoolingOf(const Tensor& data) {
  const Shape& shape = data.shape();
  Pooling pooling{shape[0], shape[1], {shape[2], shape[3]}, {1, 1}, {}, false, false};
  pooling.window.kernel = pooling.input;
  return pooling;
}

void MaxPoolTensors(const Pooling& pooling, Inputs inputs, Outputs outputs) {
  VisitNumberType(inputs[0].dtype(), [&](auto element) { MaxPool<decltype(element)>(pooling, inputs[0], outputs[0]); });
}

void AveragePoolTensors(const Pooling& pooling, Inputs inputs, Outputs outputs) {
  VisitFloatType(inputs[0].dtype(), [&](auto element) { AveragePool<decltype(element)>(pooling, inputs[0], outputs[0]); });
}

}  // namespace

void ReferenceMaxPool2d(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  MaxPoolTensors(PoolingOf(inputs[0], attributes), inputs, outputs);
}

void ReferenceAveragePool2d(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  AveragePoolTensors(PoolingOf(inputs[0], attributes), inputs, outputs);
}

void ReferenceGlobalMaxPool2d(Inputs inputs, const Attributes&, Outputs outputs) {
  MaxPoolTensors(GlobalPoolingOf(inputs[0]), inputs, outputs);
}

void ReferenceGlobalAveragePool2d(Inputs inputs, const Attributes&, Outputs outputs) {
  AveragePoolTensors(GlobalPoolingOf(inputs[0]), inputs, outputs);
}

}  // namespace collage
