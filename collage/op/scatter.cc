#include <algorithm>
#include <cstring>

#include "collage/op/binary_kernel.h"
#include "collage/op/families.h"
#include "collage/op/index_walk.h"
#include "collage/op/rules.h"
#include "collage/op/updated_argument.h"

namespace collage {
namespace {

const char* const kReductions = "\"update\", \"add\", \"mul\", \"min\" or \"max\"";

Status CheckReduction(const Attributes& attributes, const char* name, const TensorType& data) {
  const std::string reduction = StringAttribute(attributes, name, "update");
  if (reduction == "update") return {};
  if (reduction != "add" && reduction != "mul" && reduction != "min" && reduction != "max") {
    return Fail("attribute '" + std::string(name) + "' is \"" + reduction + "\", expected " + kReductions);
  }
  return ExpectNumber(data, "data");
}

/// Elements are then replaced in the result, which may lie where data does (UpdatedArgument).
void CopyData(const Tensor& data, Tensor& result) {
  if (result.Bytes() != data.Bytes()) std::memcpy(result.MutableBytes(), data.Bytes(), data.ByteCount());
}

/// `visit(combine)` with the function that joins what is there and what is scattered.
template <class T, class Visitor>
void VisitReduction(const std::string& reduction, Visitor&& visit) {
  if (reduction == "add") return visit([](T a, T b) { return AddFunction()(a, b); });
  if (reduction == "mul") return visit([](T a, T b) { return MultiplyFunction()(a, b); });
  if (reduction == "min") return visit([](T a, T b) { return MinimumFunction()(a, b); });
  if (reduction == "max") return visit([](T a, T b) { return MaximumFunction()(a, b); });
  visit([](T, T b) { return b; });
}

/// A negative index counts from the end; one outside is clamped.
int64_t Clamped(int64_t index, int64_t extent) { return std::clamp<int64_t>(index < 0 ? index + extent : index, 0, extent - 1); }

Result<Type> GatherElementsType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const TensorType indices = COLLAGE_TRY(TensorArgument(arguments, 1, "indices"));
  COLLAGE_TRY_STATUS(ExpectInteger(indices, "indices"));
  COLLAGE_TRY_STATUS(ExpectRank(indices, "indices", data.shape.size()));
  const size_t axis = COLLAGE_TRY(NormaliseAxis(IntAttribute(attributes, "axis", 0), data.shape.size()));
  for (size_t d = 0; d < data.shape.size(); ++d) {
    const bool fits = d == axis ? data.shape[d] > 0 || indices.ElementCount() == 0 : indices.shape[d] <= data.shape[d];
    if (!fits) return Fail("indices has shape " + ToString(indices.shape) + ", expected to fit data of shape " + ToString(data.shape));
  }
  return Type(TensorType{indices.shape, data.dtype});
}

void GatherElementsKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  const Shape& shape = inputs[0].shape();
  const size_t axis = AxisAttribute(attributes, "axis", 0, shape.size());
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  const std::vector<int64_t> indices = inputs[1].ToInt64();
  const size_t size = ByteSize(inputs[0].dtype());
  std::byte* target = outputs[0].MutableBytes();
  size_t i = 0;
  for (IndexWalk walk(outputs[0].shape()); walk.Valid(); walk.Next(), ++i) {
    const int64_t place = PlaceOf(walk.index(), strides) + (Clamped(indices[i], shape[axis]) - walk[axis]) * strides[axis];
    std::memcpy(target + i * size, inputs[0].Bytes() + static_cast<size_t>(place) * size, size);
  }
}

Result<Type> ScatterElementsType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const TensorType indices = COLLAGE_TRY(TensorArgument(arguments, 1, "indices"));
  const TensorType updates = COLLAGE_TRY(TensorArgument(arguments, 2, "updates"));
  COLLAGE_TRY_STATUS(ExpectSameDType(updates, "updates", data, "data"));
  COLLAGE_TRY_STATUS(ExpectShape(updates, "updates", indices.shape));
  COLLAGE_TRY_STATUS(CheckReduction(attributes, "reduction", data));
  COLLAGE_TRY(GatherElementsType(arguments.first(2), attributes));
  return Type(data);
}

void ScatterElementsKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  const Shape& shape = inputs[0].shape();
  const size_t axis = AxisAttribute(attributes, "axis", 0, shape.size());
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  const std::vector<int64_t> indices = inputs[1].ToInt64();
  CopyData(inputs[0], outputs[0]);
  VisitElementType(inputs[0].dtype(), [&](auto element) {
    using T = decltype(element);
    T* result = outputs[0].MutableData<T>();
    const T* updates = inputs[2].Data<T>();
    VisitReduction<T>(StringAttribute(attributes, "reduction", "update"), [&](auto combine) {
      size_t i = 0;
      for (IndexWalk walk(inputs[1].shape()); walk.Valid(); walk.Next(), ++i) {
        T& target = result[PlaceOf(walk.index(), strides) + (Clamped(indices[i], shape[axis]) - walk[axis]) * strides[axis]];
        target = combine(target, updates[i]);
      }
    });
  });
}

Result<Type> ScatterNdType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const TensorType indices = COLLAGE_TRY(TensorArgument(arguments, 1, "indices"));
  const TensorType updates = COLLAGE_TRY(TensorArgument(arguments, 2, "updates"));
  COLLAGE_TRY_STATUS(ExpectInteger(indices, "indices"));
  COLLAGE_TRY_STATUS(ExpectRankAtLeast(indices, "indices", 1));
  COLLAGE_TRY_STATUS(ExpectSameDType(updates, "updates", data, "data"));
  COLLAGE_TRY_STATUS(CheckReduction(attributes, "mode", data));
  const int64_t depth = indices.shape[0];
  if (depth < 0 || depth > static_cast<int64_t>(data.shape.size())) {
    return Fail("indices has shape " + ToString(indices.shape) + ", expected a first extent of at most " +
                std::to_string(data.shape.size()) + " (dimensions of data)");
  }
  Shape expected(indices.shape.begin() + 1, indices.shape.end());
  expected.insert(expected.end(), data.shape.begin() + depth, data.shape.end());
  COLLAGE_TRY_STATUS(ExpectShape(updates, "updates", expected));
  const bool empty = ElementCount(Shape(data.shape.begin(), data.shape.begin() + depth)) == 0;
  if (empty && updates.ElementCount() > 0) return Fail("data has shape " + ToString(data.shape) + ", expected elements to scatter to");
  return Type(data);
}

void ScatterNdKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  const Shape& shape = inputs[0].shape();
  const auto depth = static_cast<size_t>(inputs[1].shape()[0]);
  const std::vector<int64_t> indices = inputs[1].ToInt64();
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  CopyData(inputs[0], outputs[0]);
  if (inputs[2].ElementCount() == 0) return;
  const int64_t slice = ElementCount(Shape(shape.begin() + static_cast<std::ptrdiff_t>(depth), shape.end()));
  const int64_t vectors = inputs[2].ElementCount() / slice;
  VisitElementType(inputs[0].dtype(), [&](auto element) {
    using T = decltype(element);
    T* result = outputs[0].MutableData<T>();
    const T* updates = inputs[2].Data<T>();
    VisitReduction<T>(StringAttribute(attributes, "mode", "update"), [&](auto combine) {
      for (int64_t v = 0; v < vectors; ++v, updates += slice) {
        int64_t place = 0;
        for (size_t m = 0; m < depth; ++m)
          place += Clamped(indices[m * static_cast<size_t>(vectors) + static_cast<size_t>(v)], shape[m]) * strides[m];
        for (int64_t i = 0; i < slice; ++i) result[place + i] = combine(result[place + i], updates[i]);
      }
    });
  });
}

Work ScatterWork(TypeArguments arguments, const Type& result, const Attributes&) {
  return {ElementCount(arguments[2]), ByteCount(arguments[1]) + 2 * ByteCount(arguments[2]) + 2 * ByteCount(result)};
}

Work GatherElementsWork(TypeArguments arguments, const Type& result, const Attributes&) {
  return {0, ByteCount(arguments[1]) + 2 * ByteCount(result)};
}

}  // namespace

std::optional<size_t> UpdatedArgument(const OpDef& op) {
  return op.name == "scatter_nd" || op.name == "scatter_elements" ? std::optional<size_t>(0) : std::nullopt;
}

void AddScatterOperators(OpTable& table) {
  const std::string meaning = std::string("how elements are joined with what is there: ") + kReductions + ", default \"update\"";
  const std::string outside = " Negative indices count from the end, those outside are clamped.";
  Register(table,
           {.name = "gather",
            .summary = "result[i][j] = data[indices[i][j]][j] for axis 0, and so on for more dimensions." + outside,
            .argument_names = {"data", "indices"},
            .attributes = {{"axis", "int", "along which indices count, default 0"}},
            .kind = OpKind::kInjective,
            .infer_type = GatherElementsType,
            .work = GatherElementsWork,
            .reference = GatherElementsKernel},
           NarrowTypes::kAsStored);
  Register(table, {.name = "scatter_elements",
                   .summary = "A copy of data in which result[indices[i][j]][j] is updates[i][j] for axis 0, and so on for more "
                              "dimensions, one after the other." +
                              outside,
                   .argument_names = {"data", "indices", "updates"},
                   .attributes = {{"axis", "int", "along which indices count, default 0"}, {"reduction", "string", meaning}},
                   .kind = OpKind::kOpaque,
                   .infer_type = ScatterElementsType,
                   .work = ScatterWork,
                   .reference = ScatterElementsKernel});
  Register(table, {.name = "scatter_nd",
                   .summary = "A copy of data in which elements or slices at index vectors are replaced, one after the other: the first "
                              "dimension of indices runs over the coordinates." +
                              outside,
                   .argument_names = {"data", "indices", "updates"},
                   .attributes = {{"mode", "string", meaning}},
                   .kind = OpKind::kOpaque,
                   .infer_type = ScatterNdType,
                   .work = ScatterWork,
                   .reference = ScatterNdKernel});
}

}  // namespace collage
