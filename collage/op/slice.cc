#include "collage/op/slice.h"

#include <algorithm>
#include <limits>

#include "collage/op/rules.h"

namespace collage {
namespace {

constexpr int64_t kMaximumWidth = int64_t{1} << 40;

// NumPy's slice of one dimension, written so that the ends INT64_MIN and INT64_MAX, which exporters use, do not overflow.
int64_t Clamp(int64_t index, int64_t extent, int64_t stride) {
  if (index < 0) index = index < -extent ? -1 : index + extent;
  if (stride > 0) return std::clamp<int64_t>(index, 0, extent);
  return std::clamp<int64_t>(index, -1, extent - 1);
}

std::string Count(const char* name, size_t count) {
  return "attribute '" + std::string(name) + "' has " + std::to_string(count) + " values, expected ";
}

}  // namespace

Result<Slice> ReadSlice(const TensorType& data, const Attributes& attributes) {
  const size_t rank = data.shape.size();
  const std::vector<int64_t> begin = IntsAttribute(attributes, "begin", {});
  const std::vector<int64_t> end = IntsAttribute(attributes, "end", {});
  std::vector<int64_t> strides = IntsAttribute(attributes, "strides", std::vector<int64_t>(begin.size(), 1));
  if (strides.size() == 1) strides.resize(begin.size(), strides[0]);
  if (end.size() != begin.size()) return Fail(Count("end", end.size()) + std::to_string(begin.size()) + " as 'begin' has");
  if (strides.size() != begin.size()) return Fail(Count("strides", strides.size()) + std::to_string(begin.size()) + " as 'begin' has");
  std::vector<size_t> axes;
  if (HasAttribute(attributes, "axes")) {
    axes = COLLAGE_TRY(NormaliseAxes(IntsAttribute(attributes, "axes", {}), rank, "axes"));
    if (axes.size() != begin.size()) return Fail(Count("axes", axes.size()) + std::to_string(begin.size()) + " as 'begin' has");
  } else {
    if (begin.size() > rank) return Fail(Count("begin", begin.size()) + "at most the " + std::to_string(rank) + " dimensions of data");
    for (size_t i = 0; i < begin.size(); ++i) axes.push_back(i);
  }
  Slice slice{std::vector<int64_t>(rank, 0), std::vector<int64_t>(rank, 1), data.shape};
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t extent = data.shape[axes[i]];
    const int64_t stride = std::max(strides[i], -std::numeric_limits<int64_t>::max());
    if (stride == 0) return Fail("attribute 'strides' has the value 0, expected anything else");
    const int64_t first = Clamp(begin[i], extent, stride);
    const int64_t last = Clamp(end[i], extent, stride);
    const int64_t distance = stride > 0 ? last - first : first - last;
    slice.begin[axes[i]] = first;
    slice.stride[axes[i]] = stride;
    slice.result[axes[i]] = distance <= 0 ? 0 : (distance - 1) / std::abs(stride) + 1;
  }
  return slice;
}

Result<std::vector<int64_t>> ReadSplit(const TensorType& data, const Attributes& attributes) {
  const size_t axis = COLLAGE_TRY(NormaliseAxis(IntAttribute(attributes, "axis", 0), data.shape.size()));
  const int64_t extent = data.shape[axis];
  const AttributeValue* value = attributes.Find("indices_or_sections");
  if (const int64_t* sections = value->AsInt()) {
    if (*sections < 1 || *sections > kMostParts || extent % *sections != 0) {
      return Fail("attribute 'indices_or_sections' is " + std::to_string(*sections) + ", expected a divisor of the extent " +
                  std::to_string(extent) + " of data along axis " + std::to_string(axis) + ", at most " + std::to_string(kMostParts));
    }
    return std::vector<int64_t>(static_cast<size_t>(*sections), extent / *sections);
  }
  std::vector<int64_t> points = IntsAttribute(attributes, "indices_or_sections", {});
  points.push_back(extent);
  std::vector<int64_t> extents;
  int64_t previous = 0;
  for (int64_t point : points) {
    if (point < previous || point > extent) {
      return Fail("attribute 'indices_or_sections' is " + ToString(*value) + ", expected ascending places between 0 and the extent " +
                  std::to_string(extent) + " of data along axis " + std::to_string(axis));
    }
    extents.push_back(point - previous);
    previous = point;
  }
  return extents;
}

Result<std::vector<std::array<int64_t, 2>>> ReadPadWidth(const TensorType& data, const Attributes& attributes) {
  const AttributeValue& value = *attributes.Find("pad_width");
  const auto malformed = [&] {
    return Fail("attribute 'pad_width' is " + ToString(value) + ", expected [before, after] for each of the " +
                std::to_string(data.shape.size()) + " dimensions of data");
  };
  if (value.AsList()->size() != data.shape.size()) return malformed();
  std::vector<std::array<int64_t, 2>> widths;
  for (const AttributeValue& item : *value.AsList()) {
    const AttributeValue::List* pair = item.AsList();
    if (!pair || pair->size() != 2 || !(*pair)[0].AsInt() || !(*pair)[1].AsInt()) return malformed();
    widths.push_back({*(*pair)[0].AsInt(), *(*pair)[1].AsInt()});
    for (int64_t width : widths.back()) {
      if (width < 0 || width > kMaximumWidth)
        return Fail("attribute 'pad_width' has the value " + std::to_string(width) + ", expected at least 0");
    }
  }
  return widths;
}

Result<std::vector<size_t>> ReadPermutation(const TensorType& data, const Attributes& attributes) {
  const size_t rank = data.shape.size();
  std::vector<size_t> axes;
  for (size_t i = rank; i-- > 0;) axes.push_back(i);
  if (!HasAttribute(attributes, "axes")) return axes;
  axes = COLLAGE_TRY(NormaliseAxes(IntsAttribute(attributes, "axes", {}), rank, "axes"));
  if (axes.size() != rank) return Fail(Count("axes", axes.size()) + "each of the " + std::to_string(rank) + " dimensions of data once");
  return axes;
}

}  // namespace collage
