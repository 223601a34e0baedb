#include <algorithm>
#include <cstring>
#include <numeric>

#include "collage/op/axis_view.h"
#include "collage/op/families.h"
#include "collage/op/index_walk.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

Result<Type> TriluType(TypeArguments arguments, const Attributes&) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  COLLAGE_TRY_STATUS(ExpectRankAtLeast(data, "data", 2));
  return Type(data);
}

void TriluKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  const Shape& shape = inputs[0].shape();
  const int64_t columns = shape.back();
  const int64_t rows = shape[shape.size() - 2];
  const int64_t shift = std::clamp<int64_t>(IntAttribute(attributes, "k", 0), -rows, columns);
  const bool upper = BoolAttribute(attributes, "upper", true);
  const size_t size = ByteSize(inputs[0].dtype());
  std::memset(outputs[0].MutableBytes(), 0, outputs[0].ByteCount());
  const int64_t lines = columns == 0 ? 0 : inputs[0].ElementCount() / columns;
  for (int64_t line = 0; line < lines; ++line) {
    const int64_t diagonal = line % rows + shift;
    const int64_t first = upper ? std::clamp<int64_t>(diagonal, 0, columns) : 0;
    const int64_t end = upper ? columns : std::clamp<int64_t>(diagonal + 1, 0, columns);
    const size_t offset = static_cast<size_t>(line * columns + first) * size;
    std::memcpy(outputs[0].MutableBytes() + offset, inputs[0].Bytes() + offset, static_cast<size_t>(end - first) * size);
  }
}

Result<Type> TopKType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  COLLAGE_TRY_STATUS(ExpectNumber(data, "data"));
  const size_t axis = COLLAGE_TRY(NormaliseAxis(IntAttribute(attributes, "axis", -1), data.shape.size()));
  const int64_t k = IntAttribute(attributes, "k", 1);
  if (k < 0 || k > data.shape[axis]) {
    return Fail("attribute 'k' is " + std::to_string(k) + ", expected at most the extent " + std::to_string(data.shape[axis]) +
                " of data along axis " + std::to_string(axis));
  }
  TensorType values = data;
  values.shape[axis] = k;
  return Type(TupleType{{values, TensorType{values.shape, DType::kInt64}}});
}

void TopKKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  const size_t axis = AxisAttribute(attributes, "axis", -1, inputs[0].shape().size());
  const AxisView from(inputs[0].shape(), axis);
  const AxisView to(outputs[0].shape(), axis);
  const bool ascending = BoolAttribute(attributes, "is_ascend", false);
  std::vector<int64_t> order(static_cast<size_t>(from.extent));
  VisitNumberType(inputs[0].dtype(), [&](auto element) {
    using T = decltype(element);
    for (int64_t line = 0; line < from.outer * from.inner; ++line) {
      const int64_t outer = line / from.inner;
      const T* data = inputs[0].Data<T>() + outer * from.extent * from.inner + line % from.inner;
      std::iota(order.begin(), order.end(), 0);
      const auto before = [&](int64_t a, int64_t b) {
        const T x = data[a * from.inner];
        const T y = data[b * from.inner];
        if (x != x || y != y) return x == x && y != y;  // NaN comes last, so that the order is one
        if (x == y) return a < b;
        return ascending ? x < y : x > y;
      };
      std::partial_sort(order.begin(), order.begin() + to.extent, order.end(), before);
      int64_t place = outer * to.extent * to.inner + line % to.inner;
      for (int64_t i = 0; i < to.extent; ++i, place += to.inner) {
        outputs[0].MutableData<T>()[place] = data[order[static_cast<size_t>(i)] * from.inner];
        outputs[1].MutableData<int64_t>()[place] = order[static_cast<size_t>(i)];
      }
    }
  });
}

Result<Type> OneHotType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType indices = COLLAGE_TRY(TensorArgument(arguments, 0, "indices"));
  const TensorType on = COLLAGE_TRY(TensorArgument(arguments, 1, "on_value"));
  const TensorType off = COLLAGE_TRY(TensorArgument(arguments, 2, "off_value"));
  COLLAGE_TRY_STATUS(ExpectInteger(indices, "indices"));
  COLLAGE_TRY_STATUS(ExpectRank(on, "on_value", 0));
  COLLAGE_TRY_STATUS(ExpectRank(off, "off_value", 0));
  COLLAGE_TRY_STATUS(ExpectSameDType(off, "off_value", on, "on_value"));
  const int64_t depth = IntAttribute(attributes, "depth", 0);
  if (depth < 0) return Fail("attribute 'depth' is " + std::to_string(depth) + ", expected at least 0");
  const size_t axis = COLLAGE_TRY(NormaliseAxis(IntAttribute(attributes, "axis", -1), indices.shape.size() + 1));
  TensorType result{indices.shape, on.dtype};
  result.shape.insert(result.shape.begin() + static_cast<std::ptrdiff_t>(axis), depth);
  return Type(std::move(result));
}

void OneHotKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  const AxisView view(outputs[0].shape(), AxisAttribute(attributes, "axis", -1, outputs[0].shape().size()));
  const std::vector<int64_t> indices = inputs[0].ToInt64();
  const size_t size = ByteSize(outputs[0].dtype());
  std::byte* target = outputs[0].MutableBytes();
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    for (int64_t i = 0; i < view.extent; ++i) {
      for (int64_t inner = 0; inner < view.inner; ++inner, target += size) {
        const bool on = indices[static_cast<size_t>(outer * view.inner + inner)] == i;
        std::memcpy(target, inputs[on ? 1 : 2].Bytes(), size);
      }
    }
  }
}

Result<Type> ReverseSequenceType(TypeArguments arguments, const Attributes& attributes) {
  const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  const TensorType lengths = COLLAGE_TRY(TensorArgument(arguments, 1, "seq_lengths"));
  COLLAGE_TRY_STATUS(ExpectInteger(lengths, "seq_lengths"));
  const size_t sequence = COLLAGE_TRY(NormaliseAxis(IntAttribute(attributes, "seq_axis", 1), data.shape.size(), "seq_axis"));
  const size_t batch = COLLAGE_TRY(NormaliseAxis(IntAttribute(attributes, "batch_axis", 0), data.shape.size(), "batch_axis"));
  if (sequence == batch) return Fail("attributes 'seq_axis' and 'batch_axis' are the same, expected different axes");
  COLLAGE_TRY_STATUS(ExpectShape(lengths, "seq_lengths", {data.shape[batch]}));
  return Type(data);
}

void ReverseSequenceKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  const Shape& shape = inputs[0].shape();
  const size_t sequence = AxisAttribute(attributes, "seq_axis", 1, shape.size());
  const size_t batch = AxisAttribute(attributes, "batch_axis", 0, shape.size());
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  const std::vector<int64_t> lengths = inputs[1].ToInt64();
  const size_t size = ByteSize(inputs[0].dtype());
  std::byte* target = outputs[0].MutableBytes();
  for (IndexWalk walk(shape); walk.Valid(); walk.Next(), target += size) {
    const int64_t length = std::clamp<int64_t>(lengths[static_cast<size_t>(walk[batch])], 0, shape[sequence]);
    const int64_t place = walk[sequence];
    const int64_t source = place < length ? length - 1 - place : place;
    const int64_t offset = PlaceOf(walk.index(), strides) + (source - place) * strides[sequence];
    std::memcpy(target, inputs[0].Bytes() + static_cast<size_t>(offset) * size, size);
  }
}

}  // namespace

void AddSelectionOperators(OpTable& table) {
  Register(table,
           {.name = "trilu",
            .summary = "The upper or lower triangle of each matrix; the rest becomes zero.",
            .argument_names = {"data"},
            .attributes = {{"k", "int", "diagonal at which the triangle begins, counted to the right, default 0"},
                           {"upper", "bool", "the upper triangle, else the lower one, default True"}},
            .kind = OpKind::kInjective,
            .infer_type = TriluType,
            .work = WorkPerOutput(0),
            .reference = TriluKernel},
           NarrowTypes::kAsStored);
  Register(table, {.name = "topk",
                   .summary = "The k largest or smallest elements along an axis, in order, and their indices; of equal ones the first "
                              "comes first. The result is a tuple (values, indices).",
                   .argument_names = {"data"},
                   .attributes = {{"k", "int", "number of elements, default 1"},
                                  {"axis", "int", "dimension along which elements are compared, default -1"},
                                  {"is_ascend", "bool", "the smallest elements, in ascending order, default False"}},
                   .kind = OpKind::kOpaque,
                   .infer_type = TopKType,
                   .work = WorkPerOutput(1),
                   .reference = TopKKernel});
  Register(table,
           {.name = "one_hot",
            .summary = "A new axis along which on_value stands at the place that the index says and off_value elsewhere.",
            .argument_names = {"indices", "on_value", "off_value"},
            .attributes = {{"depth", "int", "extent of the new axis", true}, {"axis", "int", "place of the new axis, default -1"}},
            .kind = OpKind::kBroadcast,
            .infer_type = OneHotType,
            .work = WorkPerOutput(1),
            .reference = OneHotKernel},
           NarrowTypes::kAsStored);
  Register(table,
           {.name = "reverse_sequence",
            .summary = "For each element of the batch, its first seq_lengths elements along an axis in reversed order.",
            .argument_names = {"data", "seq_lengths"},
            .attributes = {{"seq_axis", "int", "dimension that is reversed, default 1"},
                           {"batch_axis", "int", "dimension of the batch, default 0"}},
            .kind = OpKind::kInjective,
            .infer_type = ReverseSequenceType,
            .work = WorkPerOutput(0),
            .reference = ReverseSequenceKernel},
           NarrowTypes::kAsStored);
}

}  // namespace collage
