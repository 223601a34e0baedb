#include "collage/op/families.h"
#include "collage/op/kernels.h"
#include "collage/op/rules.h"
#include "collage/op/slice.h"

namespace collage {
namespace {

Result<Type> TransposeType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  TensorType result{{}, data.dtype};
  for (size_t axis : COLLAGE_TRY(ReadPermutation(data, attributes))) result.shape.push_back(data.shape[axis]);
  return Type(std::move(result));
}

Result<Type> ConcatenateType(TypeArguments arguments, const Attributes& attributes) {
  const std::vector<TensorType> fields = COLLAGE_TRY(TupleArgument(arguments, 0, "data"));
  TensorType result = fields[0];
  const size_t axis = COLLAGE_TRY(NormaliseAxis(IntAttribute(attributes, "axis", 0), result.shape.size()));
  for (size_t i = 1; i < fields.size(); ++i) {
    const std::string name = "data." + std::to_string(i);
    COLLAGE_TRY_STATUS(ExpectSameDType(fields[i], name, fields[0], "data.0"));
    COLLAGE_TRY_STATUS(ExpectRank(fields[i], name, fields[0].shape.size()));
    Shape expected = fields[0].shape;
    expected[axis] = fields[i].shape[axis];
    COLLAGE_TRY_STATUS(ExpectShape(fields[i], name, expected));
    result.shape[axis] += fields[i].shape[axis];
  }
  return Type(std::move(result));
}

Result<Type> StackType(TypeArguments arguments, const Attributes& attributes) {
  const std::vector<TensorType> fields = COLLAGE_TRY(TupleArgument(arguments, 0, "data"));
  TensorType result = fields[0];
  const size_t axis = COLLAGE_TRY(NormaliseAxis(IntAttribute(attributes, "axis", 0), result.shape.size() + 1));
  for (size_t i = 1; i < fields.size(); ++i) {
    const std::string name = "data." + std::to_string(i);
    COLLAGE_TRY_STATUS(ExpectSameDType(fields[i], name, fields[0], "data.0"));
    COLLAGE_TRY_STATUS(ExpectShape(fields[i], name, fields[0].shape));
  }
  result.shape.insert(result.shape.begin() + static_cast<std::ptrdiff_t>(axis), static_cast<int64_t>(fields.size()));
  return Type(std::move(result));
}

Result<Type> SplitType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  TupleType result;
  for (int64_t extent : COLLAGE_TRY(ReadSplit(data, attributes))) {
    TensorType part = data;
    part.shape[AxisAttribute(attributes, "axis", 0, data.shape.size())] = extent;
    result.fields.emplace_back(std::move(part));
  }
  return Type(std::move(result));
}

Result<Type> StridedSliceType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  return Type(TensorType{COLLAGE_TRY(ReadSlice(data, attributes)).result, data.dtype});
}

Result<Type> PadType(TypeArguments arguments, const Attributes& attributes) {
  TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const TensorType value = COLLAGE_TRY(TensorArgument(arguments, 1, "pad_value"));
  COLLAGE_TRY_STATUS(ExpectRank(value, "pad_value", 0));
  COLLAGE_TRY_STATUS(ExpectSameDType(value, "pad_value", data, "data"));
  const std::string mode = StringAttribute(attributes, "pad_mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect")
    return Fail("attribute 'pad_mode' is \"" + mode + "\", expected \"constant\", \"edge\" or \"reflect\"");
  const auto widths = COLLAGE_TRY(ReadPadWidth(data, attributes));
  for (size_t i = 0; i < widths.size(); ++i) {
    const int64_t extent = data.shape[i];
    for (int64_t width : widths[i]) {
      if ((mode == "reflect" && width > 0 && width >= extent) || (mode == "edge" && width > 0 && extent == 0)) {
        return Fail("attribute 'pad_width' has the value " + std::to_string(width) + " along axis " + std::to_string(i) + ", expected " +
                    (mode == "edge" ? "0" : "less than the extent") + " of data of shape " + ToString(data.shape) + " in mode \"" + mode +
                    "\"");
      }
    }
    data.shape[i] += widths[i][0] + widths[i][1];
  }
  return Type(std::move(data));
}

Result<Type> TileType(TypeArguments arguments, const Attributes& attributes) {
  TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const std::vector<int64_t> reps = IntsAttribute(attributes, "reps", {});
  if (reps.size() > data.shape.size()) data.shape.insert(data.shape.begin(), reps.size() - data.shape.size(), 1);
  const size_t offset = data.shape.size() - reps.size();
  for (size_t i = 0; i < reps.size(); ++i) {
    if (reps[i] < 0) return Fail("attribute 'reps' has the value " + std::to_string(reps[i]) + ", expected at least 0");
    int64_t& extent = data.shape[offset + i];
    if (extent > 0 && reps[i] > (int64_t{1} << 40) / extent) return Fail("attribute 'reps' makes an extent larger than 2^40");
    extent *= reps[i];
  }
  return Type(std::move(data));
}

OpDef Movement(std::string name, std::string summary, std::vector<std::string> arguments, std::vector<AttributeSpec> attributes,
               OpDef::TypeRule infer_type, OpDef::WorkRule work, OpDef::ReferenceKernel reference) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .argument_names = std::move(arguments),
          .attributes = std::move(attributes),
          .kind = OpKind::kInjective,
          .is_within_arguments = true,
          .infer_type = std::move(infer_type),
          .work = std::move(work),
          .reference = std::move(reference)};
}

}  // namespace

void AddDataMovementOperators(OpTable& table) {
  const OpDef::WorkRule copies = WorkPerOutput(0);
  Register(table,
           Movement("transpose", "Permutes the dimensions: dimension i of the result is dimension axes[i] of data.", {"data"},
                    {{"axes", "ints", "permutation, default the reversed order"}}, TransposeType, copies, ReferenceTranspose),
           NarrowTypes::kAsStored);
  Register(table,
           Movement("concatenate", "Joins the tensors of a tuple along an existing axis.", {"data"},
                    {{"axis", "int", "along which they are joined, default 0"}}, ConcatenateType, copies, ReferenceConcatenate),
           NarrowTypes::kAsStored);
  Register(table,
           Movement("stack", "Joins the tensors of a tuple along a new axis.", {"data"},
                    {{"axis", "int", "place of the new axis in the result, default 0"}}, StackType, copies, ReferenceStack),
           NarrowTypes::kAsStored);
  Register(table,
           Movement("split", "Cuts a tensor along an axis; the result is a tuple.", {"data"},
                    {{"indices_or_sections", "ints", "number of equal parts, or a list of the places where to cut", true},
                     {"axis", "int", "along which it is cut, default 0"}},
                    SplitType, MoveWork, ReferenceSplit),
           NarrowTypes::kAsStored);
  Register(table,
           Movement("strided_slice", "Every stride-th element from begin to before end, as NumPy slices.", {"data"},
                    {{"begin", "ints", "first elements; negative ones count from the end", true},
                     {"end", "ints", "ends (not included); negative ones count from the end", true},
                     {"strides", "ints", "steps, possibly negative; one value is for all; default 1"},
                     {"axes", "ints", "the axes that begin, end and strides are for, default the first ones"}},
                    StridedSliceType, MoveWork, ReferenceStridedSlice),
           NarrowTypes::kAsStored);
  Register(table,
           Movement("nn.pad", "Adds elements before and after each dimension.", {"data", "pad_value"},
                    {{"pad_width", "list", "[before, after] for each dimension", true},
                     {"pad_mode", "string", "\"constant\" (pad_value), \"edge\" or \"reflect\", default \"constant\""}},
                    PadType, copies, ReferencePad),
           NarrowTypes::kAsStored);
  Register(table,
           Movement("tile", "Repeats a tensor along its dimensions.", {"data"},
                    {{"reps", "ints", "how often, aligned with the last dimension", true}}, TileType, copies, ReferenceTile),
           NarrowTypes::kAsStored);
}

}  // namespace collage
