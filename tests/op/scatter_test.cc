#include "op_testing.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorType Indices(Shape shape) { return T(std::move(shape), DType::kInt64); }

TEST(ScatterTest, InfersShapes) {
  EXPECT_EQ(Infer("gather", {T({3, 4}), Indices({2, 4})}, {{"axis", 0}}), "Tensor[(2, 4), float32]");
  EXPECT_EQ(Infer("scatter_elements", {T({3, 4}), Indices({2, 3}), T({2, 3})}), "Tensor[(3, 4), float32]");
  EXPECT_EQ(Infer("scatter_nd", {T({3, 4, 5}), Indices({2, 6}), T({6, 5})}), "Tensor[(3, 4, 5), float32]");
}

TEST(ScatterTest, RefusesWhatBreaksAConstraint) {
  EXPECT_THAT(Infer("gather", {T({3}), T({2})}), HasSubstr("indices has dtype float32, expected an integer type"));
  EXPECT_THAT(Infer("gather", {T({3}), Indices({2, 1})}), HasSubstr("expected 1 dimensions"));
  EXPECT_THAT(Infer("gather", {T({3, 2}), Indices({1, 3})}), HasSubstr("expected to fit data of shape (3, 2)"));
  EXPECT_THAT(Infer("gather", {T({3}), Indices({3})}, {{"axis", 1}}), HasSubstr("expected an axis in [-1, 1)"));
  EXPECT_THAT(Infer("scatter_elements", {T({3}), Indices({2}), T({3})}), HasSubstr("updates has shape (3,), expected (2,)"));
  EXPECT_THAT(Infer("scatter_elements", {T({3}), Indices({2}), T({2}, DType::kInt8)}), HasSubstr("updates has dtype int8"));
  EXPECT_THAT(Infer("scatter_elements", {T({3}), Indices({2}), T({2})}, {{"reduction", "mean"}}),
              HasSubstr("attribute 'reduction' is \"mean\""));
  EXPECT_THAT(Infer("scatter_nd", {T({3}), Indices({2, 4}), T({4})}), HasSubstr("expected a first extent of at most 1"));
  EXPECT_THAT(Infer("scatter_nd", {T({3, 4}), Indices({1, 2}), T({2})}), HasSubstr("updates has shape (2,), expected (2, 4)"));
}

TEST(ScatterTest, GathersElements) {
  const Tensor data = Random(T({3, 4}, DType::kInt16));
  const Tensor indices = Int64s({2, 3}, {2, 0, -1, 1, 1, -3});
  ExpectTensor(Apply("gather", {data, indices}, {{"axis", 0}}), T({2, 3}, DType::kInt16),
               [x = Reader(data), i = Reader(indices)](const Index& o) {
                 const auto row = static_cast<int64_t>(i(o));
                 return x({row < 0 ? row + 3 : row, o[1]});
               });
}

TEST(ScatterTest, ElementsAreReplacedOrJoinedOneAfterTheOther) {
  const Tensor data = Floats({4}, {1, 2, 3, 4});
  const Tensor indices = Int64s({3}, {1, 1, -1});
  const Tensor updates = Floats({3}, {5, 7, 0.5});
  EXPECT_THAT(Apply("scatter_elements", {data, indices, updates}).ToDouble(), ElementsAre(1, 7, 3, 0.5));
  EXPECT_THAT(Apply("scatter_elements", {data, indices, updates}, {{"reduction", "add"}}).ToDouble(), ElementsAre(1, 14, 3, 4.5));
  EXPECT_THAT(Apply("scatter_elements", {data, indices, updates}, {{"reduction", "mul"}}).ToDouble(), ElementsAre(1, 70, 3, 2));
  EXPECT_THAT(Apply("scatter_elements", {data, indices, updates}, {{"reduction", "max"}}).ToDouble(), ElementsAre(1, 7, 3, 4));
  EXPECT_THAT(Apply("scatter_elements", {data, indices, updates}, {{"reduction", "min"}}).ToDouble(), ElementsAre(1, 2, 3, 0.5));
}

TEST(ScatterTest, SlicesGoToIndexVectors) {
  const Tensor data = Floats({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(Apply("scatter_nd", {data, Int64s({1, 1}, {1}), Floats({1, 2}, {8, 9})}).ToDouble(), ElementsAre(1, 2, 8, 9));
  const Tensor corners = Int64s({2, 2}, {0, 1, 1, -2});  // (0, 1) and (1, -2)
  EXPECT_THAT(Apply("scatter_nd", {data, corners, Floats({2}, {10, 20})}, {{"mode", "add"}}).ToDouble(), ElementsAre(1, 12, 23, 4));
}

}  // namespace
}  // namespace collage
