#include <algorithm>
#include <cstring>

#include "collage/op/axis_view.h"
#include "collage/op/binary_kernel.h"
#include "collage/op/kernels.h"
#include "collage/op/rules.h"
#include "collage/op/slice.h"
#include "collage/op/strided_copy.h"
#include "collage/support/check.h"

namespace collage {
namespace {

template <class T>
T Checked(Result<T> value) {
  COLLAGE_CHECK(value.has_value());
  return std::move(value).value();
}

/// Copies data, read from `offset` with `strides`, into the whole of a row-major result.
void CopyInto(Tensor& result, const Tensor& data, int64_t offset, const std::vector<int64_t>& strides) {
  const size_t size = ByteSize(data.dtype());
  CopyStrided(result.shape(), data.Bytes() + offset * static_cast<int64_t>(size), strides, result.MutableBytes(),
              RowMajorStrides(result.shape()), size);
}

/// Both tensors seen as [outer, *, inner]: copies `count` slices from place `from` of data to place `to` of the result.
void CopySlices(const AxisView& data_view, const Tensor& data, int64_t from, const AxisView& result_view, Tensor& result, int64_t to,
                int64_t count) {
  const auto size = static_cast<int64_t>(ByteSize(data.dtype()));
  const int64_t run = count * data_view.inner * size;
  if (run == 0) return;
  for (int64_t outer = 0; outer < data_view.outer; ++outer) {
    std::memcpy(result.MutableBytes() + (outer * result_view.extent + to) * result_view.inner * size,
                data.Bytes() + (outer * data_view.extent + from) * data_view.inner * size, static_cast<size_t>(run));
  }
}

/// The element of data that pads place i of the result, for data of `extent` after `before` elements.
int64_t PadSource(int64_t i, int64_t before, int64_t extent, bool reflect) {
  const int64_t place = i - before;
  if (!reflect) return std::clamp<int64_t>(place, 0, extent - 1);
  if (place < 0) return -place;
  return place < extent ? place : 2 * (extent - 1) - place;
}

void PadByCopying(const Tensor& data, const std::vector<std::array<int64_t, 2>>& widths, bool reflect, Tensor& result) {
  // Axis by axis from the last: slices of the axis are gathered from what the axes after it have already made.
  Tensor current = data;
  for (size_t axis = widths.size(); axis-- > 0;) {
    if (widths[axis][0] == 0 && widths[axis][1] == 0) continue;
    TensorType type = current.type();
    const AxisView from(type.shape, axis);
    type.shape[axis] += widths[axis][0] + widths[axis][1];
    const AxisView to(type.shape, axis);
    Tensor padded(type);
    for (int64_t i = 0; i < to.extent; ++i)
      CopySlices(from, current, PadSource(i, widths[axis][0], from.extent, reflect), to, padded, i, 1);
    current = std::move(padded);
  }
  std::memcpy(result.MutableBytes(), current.Bytes(), current.ByteCount());
}

void FillWith(Tensor& result, const Tensor& value) { CopyInto(result, value, 0, std::vector<int64_t>(result.shape().size(), 0)); }

}  // namespace

void ReferenceTranspose(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  const std::vector<int64_t> own = RowMajorStrides(inputs[0].shape());
  std::vector<int64_t> strides;
  for (size_t axis : Checked(ReadPermutation(inputs[0].type(), attributes))) strides.push_back(own[axis]);
  CopyInto(outputs[0], inputs[0], 0, strides);
}

void ReferenceConcatenate(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  const size_t axis = AxisAttribute(attributes, "axis", 0, outputs[0].shape().size());
  const AxisView to(outputs[0].shape(), axis);
  int64_t place = 0;
  for (const Tensor& input : inputs) {
    const AxisView from(input.shape(), axis);
    CopySlices(from, input, 0, to, outputs[0], place, from.extent);
    place += from.extent;
  }
}

void ReferenceStack(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  const size_t axis = AxisAttribute(attributes, "axis", 0, outputs[0].shape().size());
  const AxisView to(outputs[0].shape(), axis);
  Shape slice = outputs[0].shape();
  slice[axis] = 1;
  const AxisView from(slice, axis);
  for (size_t i = 0; i < inputs.size(); ++i) CopySlices(from, inputs[i], 0, to, outputs[0], static_cast<int64_t>(i), 1);
}

void ReferenceSplit(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  const size_t axis = AxisAttribute(attributes, "axis", 0, inputs[0].shape().size());
  const AxisView from(inputs[0].shape(), axis);
  int64_t place = 0;
  for (Tensor& output : outputs) {
    const AxisView to(output.shape(), axis);
    CopySlices(from, inputs[0], place, to, output, 0, to.extent);
    place += to.extent;
  }
}

void ReferenceStridedSlice(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  if (outputs[0].ElementCount() == 0) return;
  const Slice slice = Checked(ReadSlice(inputs[0].type(), attributes));
  std::vector<int64_t> strides = RowMajorStrides(inputs[0].shape());
  int64_t offset = 0;
  for (size_t d = 0; d < strides.size(); ++d) {
    offset += slice.begin[d] * strides[d];
    // A stride past the end is given where one element is taken; it must not be multiplied.
    strides[d] = slice.result[d] == 1 ? 0 : strides[d] * slice.stride[d];
  }
  CopyInto(outputs[0], inputs[0], offset, strides);
}

void ReferencePad(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  const auto widths = Checked(ReadPadWidth(inputs[0].type(), attributes));
  const std::string mode = StringAttribute(attributes, "pad_mode", "constant");
  if (mode != "constant") return PadByCopying(inputs[0], widths, mode == "reflect", outputs[0]);
  FillWith(outputs[0], inputs[1]);
  const std::vector<int64_t> strides = RowMajorStrides(outputs[0].shape());
  int64_t offset = 0;
  for (size_t d = 0; d < widths.size(); ++d) offset += widths[d][0] * strides[d];
  const size_t size = ByteSize(inputs[0].dtype());
  CopyStrided(inputs[0].shape(), inputs[0].Bytes(), RowMajorStrides(inputs[0].shape()),
              outputs[0].MutableBytes() + offset * static_cast<int64_t>(size), strides, size);
}

void ReferenceTile(Inputs inputs, const Attributes&, Outputs outputs) {
  // Each dimension of the result is (repetition, place in data): twice the dimensions, the outer ones of stride 0.
  const Shape& shape = inputs[0].shape();
  const Shape& result = outputs[0].shape();
  const std::vector<int64_t> own = RowMajorStrides(shape);
  Shape extents;
  std::vector<int64_t> strides;
  for (size_t d = 0; d < result.size(); ++d) {
    const bool added = d + shape.size() < result.size();
    const size_t source = added ? 0 : d + shape.size() - result.size();
    const int64_t extent = added ? 1 : shape[source];
    extents.insert(extents.end(), {extent == 0 ? 0 : result[d] / extent, extent});
    strides.insert(strides.end(), {0, added ? 0 : own[source]});
  }
  const size_t size = ByteSize(inputs[0].dtype());
  CopyStrided(extents, inputs[0].Bytes(), strides, outputs[0].MutableBytes(), RowMajorStrides(extents), size);
}

void ReferenceBroadcastTo(Inputs inputs, const Attributes&, Outputs outputs) {
  CopyInto(outputs[0], inputs[0], 0, BroadcastStrides(inputs[0].shape(), outputs[0].shape()));
}

void ReferenceWhere(Inputs inputs, const Attributes&, Outputs outputs) {
  // y everywhere, then x where the condition holds.
  const Shape& shape = outputs[0].shape();
  CopyInto(outputs[0], inputs[2], 0, BroadcastStrides(inputs[2].shape(), shape));
  const bool* condition = inputs[0].Data<bool>();
  const std::byte* x = inputs[1].Bytes();
  std::byte* target = outputs[0].MutableBytes();
  const auto size = static_cast<int64_t>(ByteSize(outputs[0].dtype()));
  ForEachRow(shape, BroadcastStrides(inputs[0].shape(), shape), BroadcastStrides(inputs[1].shape(), shape),
             [&](int64_t first, int64_t c, int64_t from, int64_t count, int64_t condition_step, int64_t step) {
               for (int64_t i = 0; i < count; ++i) {
                 if (!condition[c + i * condition_step]) continue;
                 std::memcpy(target + (first + i) * size, x + (from + i * step) * size, static_cast<size_t>(size));
               }
             });
}

}  // namespace collage
