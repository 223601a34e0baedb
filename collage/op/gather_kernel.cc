#include <algorithm>
#include <cstring>

#include "collage/op/axis_view.h"
#include "collage/op/kernels.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

int64_t Wrap(int64_t index, int64_t extent) {
  const int64_t remainder = index % extent;
  return remainder < 0 ? remainder + extent : remainder;
}

// uint64 indices above INT64_MAX have become negative; they are outside either way.
std::vector<int64_t> TakenPlaces(const Tensor& indices, const Attributes& attributes, int64_t extent) {
  const bool wrap = StringAttribute(attributes, "mode", "clip") == "wrap";
  std::vector<int64_t> places = indices.ToInt64();
  for (int64_t& place : places) place = wrap ? Wrap(place, extent) : std::clamp<int64_t>(place, 0, extent - 1);
  return places;
}

}  // namespace

void ReferenceTake(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  if (outputs[0].ElementCount() == 0) return;
  const Tensor& data = inputs[0];
  AxisView view(Shape{data.ElementCount()}, 0);
  if (HasAttribute(attributes, "axis")) view = AxisView(data.shape(), AxisAttribute(attributes, "axis", 0, data.shape().size()));
  const auto slice = static_cast<size_t>(view.inner) * ByteSize(data.dtype());
  std::byte* target = outputs[0].MutableBytes();
  const std::vector<int64_t> places = TakenPlaces(inputs[1], attributes, view.extent);
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    for (int64_t place : places) {
      std::memcpy(target, data.Bytes() + static_cast<size_t>(outer * view.extent + place) * slice, slice);
      target += slice;
    }
  }
}

void ReferenceGatherNd(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  if (outputs[0].ElementCount() == 0) return;
  const Tensor& data = inputs[0];
  const auto batch_dims = static_cast<size_t>(IntAttribute(attributes, "batch_dims", 0));
  const std::vector<int64_t> indices = inputs[1].ToInt64();
  const auto depth = static_cast<size_t>(inputs[1].shape()[0]);
  const size_t vectors = indices.size() / depth;
  const std::vector<int64_t> strides = RowMajorStrides(data.shape());
  int64_t batches = 1;
  for (size_t d = 0; d < batch_dims; ++d) batches *= data.shape()[d];
  const size_t vectors_per_batch = vectors / static_cast<size_t>(batches);
  const int64_t batch_stride = data.ElementCount() / batches;
  const auto slice = static_cast<size_t>(strides[batch_dims + depth - 1]) * ByteSize(data.dtype());
  std::byte* target = outputs[0].MutableBytes();
  for (size_t v = 0; v < vectors; ++v) {
    int64_t offset = static_cast<int64_t>(v / vectors_per_batch) * batch_stride;
    for (size_t m = 0; m < depth; ++m) {
      const int64_t extent = data.shape()[batch_dims + m];
      const int64_t index = indices[m * vectors + v];
      offset += std::clamp<int64_t>(index < 0 ? index + extent : index, 0, extent - 1) * strides[batch_dims + m];
    }
    std::memcpy(target + v * slice, data.Bytes() + static_cast<size_t>(offset) * ByteSize(data.dtype()), slice);
  }
}

}  // namespace collage
