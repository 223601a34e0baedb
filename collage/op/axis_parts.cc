#include "collage/op/axis_parts.h"

#include <algorithm>
#include <utility>

#include "collage/op/rules.h"
#include "collage/op/slice.h"

namespace collage {
namespace {

void AddPart(AxisParts& parts, int64_t extent) {
  parts.begins.push_back(parts.begins.empty() ? 0 : parts.begins.back() + parts.extents.back());
  parts.extents.push_back(extent);
}

void AddParts(AxisParts& parts, const Type& tuple) {
  for (const TensorType& part : FlattenTensors(tuple)) AddPart(parts, part.shape[parts.axis]);
}

/// The one axis along which a slice leaves elements out; nothing where there is none, or more than one.
std::optional<AxisParts> PartOfSlice(const TensorType& data, const Attributes& attributes) {
  const Result<Slice> slice = ReadSlice(data, attributes);
  if (!slice) return std::nullopt;
  std::optional<size_t> axis;
  for (size_t i = 0; i < data.shape.size(); ++i) {
    if (slice->result[i] == data.shape[i] && slice->stride[i] == 1) continue;
    const bool steps_by_one = slice->stride[i] == 1 || slice->result[i] == 1;
    if (axis || !steps_by_one) return std::nullopt;
    axis = i;
  }
  if (!axis) return std::nullopt;
  return AxisParts{false, *axis, data, {slice->begin[*axis]}, {slice->result[*axis]}};
}

std::optional<AxisParts> FindParts(const Call& call, const Type& result) {
  const Op* op = call.callee->As<Op>();
  if (!op || call.args.empty()) return std::nullopt;
  const std::string& name = op->def->name;
  AxisParts parts;
  if (name == "concatenate") {
    parts.is_join = true;
    parts.whole = *result.AsTensor();
    parts.axis = AxisAttribute(call.attributes, "axis", 0, parts.whole.shape.size());
    AddParts(parts, call.args[0]->type());
    return parts;
  }
  const TensorType* data = call.args[0]->type().AsTensor();
  if (!data) return std::nullopt;
  if (name == "strided_slice") return PartOfSlice(*data, call.attributes);
  if (name != "split") return std::nullopt;
  parts.whole = *data;
  parts.axis = AxisAttribute(call.attributes, "axis", 0, data->shape.size());
  AddParts(parts, result);
  return parts;
}

}  // namespace

std::optional<AxisParts> PartsAlongAxis(const Call& call, const Type& result) {
  std::optional<AxisParts> parts = FindParts(call, result);
  if (!parts) return std::nullopt;
  const int64_t whole = parts->whole.shape[parts->axis];
  const bool are_parts =
      std::all_of(parts->extents.begin(), parts->extents.end(), [&](int64_t extent) { return extent > 0 && extent < whole; });
  const bool has_elements = parts->whole.ElementCount() > 0;
  return are_parts && has_elements ? std::move(parts) : std::nullopt;
}

}  // namespace collage
