#include <algorithm>
#include <cstring>

#include "collage/op/families.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

Result<Type> CopyType(TypeArguments arguments, const Attributes&) { return Type(COLLAGE_TRY(TensorArgument(arguments, 0, "data"))); }

Status MismatchedReshape(const TensorType& data, const Shape& newshape) {
  return Fail("attribute 'newshape' is " + ToString(newshape) + ", expected a shape of the " + std::to_string(data.ElementCount()) +
              " elements of data, which has shape " + ToString(data.shape));
}

Result<Type> ReshapeType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const Shape newshape = IntsAttribute(attributes, "newshape", {});
  Shape shape = newshape;
  size_t inferred = shape.size();
  int64_t known = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < -1) return Fail("attribute 'newshape' is " + ToString(newshape) + ", expected extents of at least 0, or -1");
    if (shape[i] == -1) {
      if (inferred != shape.size()) return Fail("attribute 'newshape' is " + ToString(newshape) + ", expected at most one -1");
      inferred = i;
      continue;
    }
    if (shape[i] == 0) {
      if (i >= data.shape.size())
        return Fail("attribute 'newshape' is " + ToString(newshape) + ", expected 0 only where data, of shape " + ToString(data.shape) +
                    ", has a dimension to keep");
      shape[i] = data.shape[i];
    }
    if (shape[i] != 0 && known > (int64_t{1} << 40) / shape[i]) return Fail(MismatchedReshape(data, newshape).error());
    known *= shape[i];
  }
  if (inferred != shape.size()) {
    if (known == 0 || data.ElementCount() % known != 0) return Fail(MismatchedReshape(data, newshape).error());
    shape[inferred] = data.ElementCount() / known;
  } else if (known != data.ElementCount()) {
    return Fail(MismatchedReshape(data, newshape).error());
  }
  return Type(TensorType{std::move(shape), data.dtype});
}

Result<Type> BatchFlattenType(TypeArguments arguments, const Attributes&) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  COLLAGE_TRY_STATUS(ExpectRankAtLeast(data, "data", 1));
  const Shape rest(data.shape.begin() + 1, data.shape.end());
  return Type(TensorType{{data.shape[0], ElementCount(rest)}, data.dtype});
}

Result<Type> SqueezeType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const size_t rank = data.shape.size();
  std::vector<bool> removed(rank);
  if (!HasAttribute(attributes, "axis")) {
    for (size_t i = 0; i < rank; ++i) removed[i] = data.shape[i] == 1;
  }
  for (size_t axis : COLLAGE_TRY(NormaliseAxes(IntsAttribute(attributes, "axis", {}), rank))) {
    if (data.shape[axis] != 1)
      return Fail("data has shape " + ToString(data.shape) + ", expected extent 1 along axis " + std::to_string(axis));
    removed[axis] = true;
  }
  TensorType result{{}, data.dtype};
  for (size_t i = 0; i < rank; ++i) {
    if (!removed[i]) result.shape.push_back(data.shape[i]);
  }
  return Type(std::move(result));
}

Result<Type> ExpandDimsType(TypeArguments arguments, const Attributes& attributes) {
  TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const size_t axis = COLLAGE_TRY(NormaliseAxis(IntAttribute(attributes, "axis", 0), data.shape.size() + 1));
  const int64_t count = IntAttribute(attributes, "num_newaxis", 1);
  if (count < 0 || count > 64) return Fail("attribute 'num_newaxis' is " + std::to_string(count) + ", expected at least 0, at most 64");
  data.shape.insert(data.shape.begin() + static_cast<std::ptrdiff_t>(axis), static_cast<size_t>(count), 1);
  return Type(std::move(data));
}

OpDef View(std::string name, std::string summary, OpKind kind, std::vector<AttributeSpec> attributes, OpDef::TypeRule infer_type) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .argument_names = {"data"},
          .attributes = std::move(attributes),
          .kind = kind,
          .is_view = true,
          .is_within_arguments = true,
          .infer_type = std::move(infer_type),
          .work = NoWork,
          .reference = [](std::span<const Tensor> inputs, const Attributes&, std::span<Tensor> outputs) {
            std::memcpy(outputs[0].MutableBytes(), inputs[0].Bytes(), inputs[0].ByteCount());
          }};
}

}  // namespace

void AddViewOperators(OpTable& table) {
  Register(table, View("copy", "The same elements.", OpKind::kElementwise, {}, CopyType), NarrowTypes::kAsStored);
  Register(table,
           View("reshape", "The same elements, row-major, under another shape.", OpKind::kInjective,
                {{"newshape", "ints", "extents; 0 keeps the extent of data at that place, one -1 is what remains", true}}, ReshapeType),
           NarrowTypes::kAsStored);
  Register(table,
           View("nn.batch_flatten", "Keeps the first dimension and joins all others to one.", OpKind::kInjective, {}, BatchFlattenType),
           NarrowTypes::kAsStored);
  Register(table,
           View("squeeze", "Removes dimensions of extent 1.", OpKind::kInjective, {{"axis", "ints", "which ones, default all of extent 1"}},
                SqueezeType),
           NarrowTypes::kAsStored);
  Register(table,
           View("expand_dims", "Inserts dimensions of extent 1.", OpKind::kBroadcast,
                {{"axis", "int", "place of the first new dimension in the result of a single insertion", true},
                 {"num_newaxis", "int", "how many, default 1"}},
                ExpandDimsType),
           NarrowTypes::kAsStored);
}

}  // namespace collage
