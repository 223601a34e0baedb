#include <algorithm>
#include <cmath>

#include "collage/op/axis_view.h"
#include "collage/op/kernels.h"
#include "collage/op/rules.h"
#include "collage/op/strided_copy.h"

namespace collage {
namespace {

/// Two neighbours along one dimension, and the weight of the second.
struct Sample {
  int64_t first;
  int64_t second;
  double weight;
};

std::vector<Sample> Samples(int64_t input, int64_t output, double scale, bool bilinear, bool align_corners) {
  std::vector<Sample> samples;
  for (int64_t o = 0; o < output; ++o) {
    double place = static_cast<double>(o) / scale;
    if (bilinear && align_corners) place = output == 1 ? 0 : static_cast<double>(o * (input - 1)) / static_cast<double>(output - 1);
    const int64_t first = std::min(static_cast<int64_t>(std::floor(place)), input - 1);
    const double weight = bilinear ? place - static_cast<double>(first) : 0;
    samples.push_back({first, std::min(first + 1, input - 1), std::min(weight, 1.0)});
  }
  return samples;
}

struct Plane {
  std::vector<Sample> rows;
  std::vector<Sample> columns;
  int64_t height;
  int64_t width;
};

template <class T>
void Interpolate(const Plane& plane, const T* data, T* result) {
  for (const Sample& y : plane.rows) {
    for (const Sample& x : plane.columns) {
      const auto at = [&](int64_t row, int64_t column) { return static_cast<double>(data[row * plane.width + column]); };
      const double top = at(y.first, x.first) * (1 - x.weight) + at(y.first, x.second) * x.weight;
      const double bottom = at(y.second, x.first) * (1 - x.weight) + at(y.second, x.second) * x.weight;
      *result++ = static_cast<T>(top * (1 - y.weight) + bottom * y.weight);
    }
  }
}

template <class T>
void PickNearest(const Plane& plane, const T* data, T* result) {
  for (const Sample& y : plane.rows) {
    for (const Sample& x : plane.columns) *result++ = data[y.first * plane.width + x.first];
  }
}

/// Calls `function(plane of data, plane of result)` for every plane, as elements of type T.
template <class T, class Function>
void ForEachPlane(const Tensor& data, Tensor& result, Function&& function) {
  const Shape& from = data.shape();
  const Shape& to = result.shape();
  for (int64_t i = 0; i < from[0] * from[1]; ++i)
    function(reinterpret_cast<const T*>(data.Bytes()) + i * from[2] * from[3],
             reinterpret_cast<T*>(result.MutableBytes()) + i * to[2] * to[3]);
}

/// The unsigned integer of an element's size: moving needs no more.
template <class Visitor>
void VisitElementSize(size_t size, Visitor&& visit) {
  if (size == 1) visit(uint8_t{});
  if (size == 2) visit(uint16_t{});
  if (size == 4) visit(uint32_t{});
  if (size == 8) visit(uint64_t{});
}

}  // namespace

void ReferenceUpsampling(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  const Shape& from = inputs[0].shape();
  const Shape& to = outputs[0].shape();
  const bool bilinear = StringAttribute(attributes, "method", "nearest_neighbor") == "bilinear";
  const bool align = BoolAttribute(attributes, "align_corners", false);
  const Plane plane{Samples(from[2], to[2], DoubleAttribute(attributes, "scale_h", 1), bilinear, align),
                    Samples(from[3], to[3], DoubleAttribute(attributes, "scale_w", 1), bilinear, align), from[2], from[3]};
  if (bilinear) {
    VisitFloatType(inputs[0].dtype(), [&](auto element) {
      using T = decltype(element);
      ForEachPlane<T>(inputs[0], outputs[0], [&](const T* data, T* result) { Interpolate(plane, data, result); });
    });
    return;
  }
  VisitElementSize(ByteSize(inputs[0].dtype()), [&](auto element) {
    using T = decltype(element);
    ForEachPlane<T>(inputs[0], outputs[0], [&](const T* data, T* result) { PickNearest(plane, data, result); });
  });
}

void ReferenceDepthToSpace(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  const Shape& shape = inputs[0].shape();
  const int64_t block = IntAttribute(attributes, "block_size", 1);
  const bool depth_first = StringAttribute(attributes, "mode", "DCR") == "DCR";
  const int64_t channels = outputs[0].shape()[1];
  const int64_t plane = shape[2] * shape[3];
  // The result as [n, c, y, block row, x, block column].
  const Shape extents = {shape[0], channels, shape[2], block, shape[3], block};
  const int64_t row_stride = depth_first ? block * channels * plane : block * plane;
  const int64_t column_stride = depth_first ? channels * plane : plane;
  const std::vector<int64_t> source = {shape[1] * plane, depth_first ? plane : block * block * plane, shape[3], row_stride, 1,
                                       column_stride};
  CopyStrided(extents, inputs[0].Bytes(), source, outputs[0].MutableBytes(), RowMajorStrides(extents), ByteSize(inputs[0].dtype()));
}

void ReferenceSpaceToDepth(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  const Shape& shape = inputs[0].shape();
  const int64_t block = IntAttribute(attributes, "block_size", 1);
  const int64_t plane = shape[2] * shape[3];
  // The result as [n, block row, block column, c, y, x].
  const Shape extents = {shape[0], block, block, shape[1], shape[2] / block, shape[3] / block};
  const std::vector<int64_t> source = {shape[1] * plane, shape[3], 1, plane, block * shape[3], block};
  CopyStrided(extents, inputs[0].Bytes(), source, outputs[0].MutableBytes(), RowMajorStrides(extents), ByteSize(inputs[0].dtype()));
}

}  // namespace collage
