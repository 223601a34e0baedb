#include "collage/op/families.h"
#include "collage/op/kernels.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

Result<Type> TakeType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const TensorType indices = COLLAGE_TRY(TensorArgument(arguments, 1, "indices"));
  COLLAGE_TRY_STATUS(ExpectInteger(indices, "indices"));
  const std::string mode = StringAttribute(attributes, "mode", "clip");
  if (mode != "clip" && mode != "wrap") return Fail("attribute 'mode' is \"" + mode + "\", expected \"clip\" or \"wrap\"");
  Shape shape = indices.shape;
  int64_t extent = data.ElementCount();
  if (HasAttribute(attributes, "axis")) {
    const size_t axis = COLLAGE_TRY(NormaliseAxis(IntAttribute(attributes, "axis", 0), data.shape.size()));
    extent = data.shape[axis];
    const auto at = data.shape.begin() + static_cast<std::ptrdiff_t>(axis);
    shape.insert(shape.begin(), data.shape.begin(), at);
    shape.insert(shape.end(), at + 1, data.shape.end());
  }
  if (extent == 0 && indices.ElementCount() > 0)
    return Fail("data has shape " + ToString(data.shape) + ", expected at least one element to take from");
  return Type(TensorType{std::move(shape), data.dtype});
}

Result<Type> GatherNdType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const TensorType indices = COLLAGE_TRY(TensorArgument(arguments, 1, "indices"));
  COLLAGE_TRY_STATUS(ExpectInteger(indices, "indices"));
  COLLAGE_TRY_STATUS(ExpectRankAtLeast(indices, "indices", 1));
  const int64_t batch_dims = IntAttribute(attributes, "batch_dims", 0);
  const int64_t depth = indices.shape[0];
  const int64_t index_rank = IntAttribute(attributes, "index_rank", depth);
  const auto rank = static_cast<int64_t>(data.shape.size());
  if (batch_dims < 0 || batch_dims >= static_cast<int64_t>(indices.shape.size()) || batch_dims > rank) {
    return Fail("attribute 'batch_dims' is " + std::to_string(batch_dims) + ", expected less than the " +
                std::to_string(indices.shape.size()) + " dimensions of indices and at most the " + std::to_string(rank) + " of data");
  }
  if (index_rank != depth) {
    return Fail("attribute 'index_rank' is " + std::to_string(index_rank) + ", expected " + std::to_string(depth) +
                ", the first extent of indices");
  }
  if (depth < 1 || depth > rank - batch_dims) {
    return Fail("indices has shape " + ToString(indices.shape) + ", expected a first extent between 1 and " +
                std::to_string(rank - batch_dims) + " (dimensions of data that are indexed)");
  }
  for (int64_t i = 0; i < batch_dims; ++i) {
    if (indices.shape[static_cast<size_t>(1 + i)] != data.shape[static_cast<size_t>(i)]) {
      return Fail("indices has shape " + ToString(indices.shape) + ", expected its extents after the first to begin with the " +
                  std::to_string(batch_dims) + " batch dimensions of data, of shape " + ToString(data.shape));
    }
  }
  Shape shape(indices.shape.begin() + 1, indices.shape.end());
  shape.insert(shape.end(), data.shape.begin() + batch_dims + depth, data.shape.end());
  const bool empty = ElementCount(Shape(data.shape.begin() + batch_dims, data.shape.begin() + batch_dims + depth)) == 0;
  if (empty && ElementCount(shape) > 0) return Fail("data has shape " + ToString(data.shape) + ", expected elements to gather from");
  return Type(TensorType{std::move(shape), data.dtype});
}

Work GatherWork(TypeArguments arguments, const Type& result, const Attributes&) {
  return {0, ByteCount(arguments[1]) + 2 * ByteCount(result)};
}

}  // namespace

void AddGatherOperators(OpTable& table) {
  Register(table,
           {.name = "take",
            .summary = "Elements (or, along an axis, slices) at given indices.",
            .argument_names = {"data", "indices"},
            .attributes = {{"axis", "int", "along which indices count, default the flattened data"},
                           {"mode", "string",
                            "indices outside are clamped (\"clip\") or taken modulo the extent (\"wrap\", so "
                            "that -1 is the last one), default \"clip\""}},
            .kind = OpKind::kInjective,
            .infer_type = TakeType,
            .work = GatherWork,
            .reference = ReferenceTake},
           NarrowTypes::kAsStored);
  Register(table,
           {.name = "gather_nd",
            .summary = "Elements or slices at index vectors: the first dimension of indices runs over the coordinates. Negative "
                       "coordinates count from the end, those outside are clamped.",
            .argument_names = {"data", "indices"},
            .attributes = {{"batch_dims", "int", "leading dimensions that data and indices share, default 0"},
                           {"index_rank", "int", "number of coordinates; when given it must agree with indices"}},
            .kind = OpKind::kInjective,
            .infer_type = GatherNdType,
            .work = GatherWork,
            .reference = ReferenceGatherNd},
           NarrowTypes::kAsStored);
}

}  // namespace collage
