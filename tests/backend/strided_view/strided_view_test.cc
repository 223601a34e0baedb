#include "collage/backend/strided_view.h"

#include <random>

#include "tests/backend/kernel_harness.h"

namespace collage {
namespace {

using namespace testing_backend;  // NOLINT(google-build-using-namespace)
using Ints = std::vector<int64_t>;

/// Operators that move blocks of a tensor, one behind the other, at random.
class RandomMovements {
 public:
  explicit RandomMovements(uint64_t seed) : random_(seed) {}

  Expr Of(Expr data, int steps) {
    for (int i = 0; i < steps; ++i) data = Next(data);
    return data;
  }

 private:
  int64_t Below(int64_t limit) { return std::uniform_int_distribution<int64_t>(0, limit - 1)(random_); }

  Expr Next(const Expr& data) {
    const Shape shape = data->type().AsTensor()->shape;
    const auto rank = static_cast<int64_t>(shape.size());
    const int64_t axis = Below(rank);
    const int64_t extent = shape[static_cast<size_t>(axis)];
    switch (Below(5)) {
      case 0: {
        Ints axes(shape.size());
        for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
        std::shuffle(axes.begin(), axes.end(), random_);
        return CallOp("transpose", {data}, {{"axes", axes}});
      }
      case 1:
        return CallOp("reshape", {data}, {{"newshape", RandomShape(ElementCount(shape))}});
      case 2: {
        if (extent < 2) return CallOp("expand_dims", {data}, {{"axis", axis}});
        const int64_t cut = 1 + Below(extent - 1);
        const Expr parts = CallOp("split", {data}, {{"indices_or_sections", Ints{cut}}, {"axis", axis}});
        return *MakeTupleGetItem(parts, static_cast<size_t>(Below(2)));
      }
      case 3: {
        const int64_t begin = Below(extent);
        const int64_t end = begin + 1 + Below(extent - begin);
        return CallOp("strided_slice", {data},
                      {{"begin", Ints{begin}}, {"end", Ints{end}}, {"axes", Ints{axis}}, {"strides", Ints{1 + Below(3)}}});
      }
      default:
        return CallOp("expand_dims", {data}, {{"axis", axis}});
    }
  }

  Shape RandomShape(int64_t count) {
    Shape shape;
    while (count > 1) {
      int64_t factor = 1 + Below(count);
      while (count % factor != 0) ++factor;
      shape.push_back(factor);
      count /= factor;
    }
    shape.insert(shape.begin() + Below(static_cast<int64_t>(shape.size()) + 1), 1);
    return shape;
  }

  std::mt19937_64 random_;
};

/// The offset and strides by which numbers that count the elements of a tensor lie in it, if there are any.
std::optional<StridedView> ViewByElements(const Shape& shape, const std::vector<int64_t>& numbers) {
  const Shape row_major = RowMajorStrides(shape);
  StridedView view{0, shape, std::vector<int64_t>(shape.size(), 0), numbers[0]};
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] > 1) view.strides[i] = numbers[static_cast<size_t>(row_major[i])] - numbers[0];
  }
  for (size_t element = 0; element < numbers.size(); ++element) {
    int64_t place = view.offset;
    for (size_t i = 0; i < shape.size(); ++i) place += static_cast<int64_t>(element) / row_major[i] % shape[i] * view.strides[i];
    if (place != numbers[element]) return std::nullopt;
  }
  return view;
}

Tensor Counted(const Shape& shape) {
  Tensor tensor(TensorType{shape});
  for (int64_t i = 0; i < tensor.ElementCount(); ++i) tensor.MutableData<float>()[i] = static_cast<float>(i);
  return tensor;
}

TEST(StridedViewTest, IsFoundWhereverOneOperatorMoreNeedsNoElementMoved) {
  const Shape given = {4, 6, 5, 4};
  const std::vector<Tensor> counted = {Counted(given)};
  size_t views = 0;
  size_t others = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    const Expr data = Input(given);
    const Expr function = FunctionOf({data}, RandomMovements(seed).Of(data, 1 + static_cast<int>(seed % 6)));
    const OpSequence sequence = *ToOpSequence(*function->As<Function>());
    const Tensor moved = Reference(function, counted);
    const std::vector<int64_t> numbers = moved.ToInt64();
    const std::optional<StridedView> view = ViewBehind(sequence, sequence.steps, sequence.results[0]);
    const std::optional<StridedView> expected = ViewByElements(moved.shape(), numbers);
    const std::span<const OpSequence::Step> before = std::span(sequence.steps).first(sequence.steps.size() - 1);
    if (view) {
      ASSERT_TRUE(expected);
      EXPECT_EQ(view->value, sequence.parameters[0]);
      EXPECT_EQ(view->dims, moved.shape());
      EXPECT_EQ(view->offset, expected->offset);
      for (size_t i = 0; i < view->dims.size(); ++i) {
        if (view->dims[i] > 1) {
          EXPECT_EQ(view->strides[i], expected->strides[i]) << i;
        }
      }
      ++views;
    } else if (ViewBehind(sequence, before, sequence.steps.back().inputs[0])) {
      EXPECT_FALSE(expected);
      ++others;
    }
  }
  EXPECT_GT(views, 1500u);
  EXPECT_GT(others, 100u);
}

TEST(StridedViewTest, ReshapedRowMajorTensorsAreRowMajor) {
  const Expr data = Input({2, 3, 4});
  for (const Ints& shape : {Ints{1, 24}, {24, 1}, {1, 2, 12}, {6, 1, 4}, {1, 2, 1, 3, 1, 4, 1}}) {
    const Expr function = FunctionOf({data}, CallOp("reshape", {data}, {{"newshape", shape}}));
    const OpSequence sequence = *ToOpSequence(*function->As<Function>());
    const std::optional<StridedView> view = ViewBehind(sequence, sequence.steps, sequence.results[0]);
    ASSERT_TRUE(view);
    EXPECT_EQ(view->strides, RowMajorStrides(shape));
  }
}

TEST(StridedViewTest, TensorsWithoutElementsAreNotReshaped) {
  const Expr data = Input({2, 0, 4});
  const Expr function = FunctionOf({data}, CallOp("reshape", {data}, {{"newshape", Ints{4, 0, 1}}}));
  const OpSequence sequence = *ToOpSequence(*function->As<Function>());
  EXPECT_FALSE(ViewBehind(sequence, sequence.steps, sequence.results[0]));
}

TEST(StridedViewTest, AheadIsWhereElementsAreStored) {
  const Expr data = Input({2, 3, 4, 5});
  const Expr merged = CallOp("reshape", {CallOp("transpose", {data}, {{"axes", Ints{0, 2, 1, 3}}})}, {{"newshape", Ints{2, 4, 15}}});
  const Expr function = FunctionOf({data}, merged);
  const OpSequence sequence = *ToOpSequence(*function->As<Function>());
  const std::optional<StridedView> view = ViewAhead(sequence, sequence.steps, sequence.parameters[0]);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->dims, (Shape{2, 3, 4, 5}));
  EXPECT_EQ(view->strides, (std::vector<int64_t>{60, 5, 15, 1}));
}

}  // namespace
}  // namespace collage
