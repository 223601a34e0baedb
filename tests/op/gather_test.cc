#include "op_testing.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorType Indices(Shape shape) { return T(std::move(shape), DType::kInt64); }

TEST(GatherTest, InfersShapes) {
  EXPECT_EQ(Infer("take", {T({5, 6}), Indices({2, 3})}, {{"axis", 0}}), "Tensor[(2, 3, 6), float32]");
  EXPECT_EQ(Infer("take", {T({5, 6}), Indices({})}, {{"axis", -1}, {"mode", "wrap"}}), "Tensor[(5,), float32]");
  EXPECT_EQ(Infer("take", {T({5, 6}), T({4}, DType::kUInt8)}), "Tensor[(4,), float32]");
  EXPECT_EQ(Infer("gather_nd", {T({5, 6, 7}), Indices({2, 4})}), "Tensor[(4, 7), float32]");
  EXPECT_EQ(Infer("gather_nd", {T({5, 6, 7}), Indices({2, 5, 4})}, {{"batch_dims", 1}, {"index_rank", 2}}), "Tensor[(5, 4), float32]");
}

TEST(GatherTest, RefusesWhatBreaksAConstraint) {
  EXPECT_THAT(Infer("take", {T({5}), T({2})}), HasSubstr("indices has dtype float32, expected an integer type"));
  EXPECT_THAT(Infer("take", {T({5}), Indices({2})}, {{"axis", 1}}), HasSubstr("expected an axis in [-1, 1)"));
  EXPECT_THAT(Infer("take", {T({5}), Indices({2})}, {{"mode", "fast"}}), HasSubstr("attribute 'mode' is \"fast\""));
  EXPECT_THAT(Infer("take", {T({0, 2}), Indices({2})}, {{"axis", 0}}), HasSubstr("expected at least one element to take from"));
  EXPECT_THAT(Infer("gather_nd", {T({5}), T({1, 2}, DType::kBool)}), HasSubstr("indices has dtype bool"));
  EXPECT_THAT(Infer("gather_nd", {T({5}), Indices({})}), HasSubstr("expected at least 1 dimensions"));
  EXPECT_THAT(Infer("gather_nd", {T({5, 6}), Indices({3, 4})}), HasSubstr("expected a first extent between 1 and 2"));
  EXPECT_THAT(Infer("gather_nd", {T({5, 6}), Indices({0, 4})}), HasSubstr("expected a first extent between 1 and 2"));
  EXPECT_THAT(Infer("gather_nd", {T({5, 6}), Indices({2, 4})}, {{"index_rank", 1}}), HasSubstr("attribute 'index_rank' is 1, expected 2"));
  EXPECT_THAT(Infer("gather_nd", {T({5, 6}), Indices({1, 4})}, {{"batch_dims", 1}}), HasSubstr("begin with the 1 batch dimensions"));
  EXPECT_THAT(Infer("gather_nd", {T({5, 6}), Indices({1, 5})}, {{"batch_dims", 2}}), HasSubstr("attribute 'batch_dims' is 2"));
  EXPECT_THAT(Infer("gather_nd", {T({5, 6}), Indices({1, 5})}, {{"batch_dims", -1}}), HasSubstr("attribute 'batch_dims' is -1"));
  EXPECT_THAT(Infer("gather_nd", {T({0, 6}), Indices({1, 5})}), HasSubstr("expected elements to gather from"));
}

TEST(GatherTest, TakesSlices) {
  const Tensor data = Random(T({4, 5, 6}, DType::kInt16));
  const Tensor indices = Int64s({2, 2}, {3, 0, 1, 1});
  const Reader x(data);
  const Reader i(indices);
  ExpectTensor(Apply("take", {data, indices}, {{"axis", 0}}), T({2, 2, 5, 6}, DType::kInt16), [&](const Index& o) {
    return x({static_cast<int64_t>(i({o[0], o[1]})), o[2], o[3]});
  });
  ExpectTensor(Apply("take", {data, indices}, {{"axis", -2}}), T({4, 2, 2, 6}, DType::kInt16), [&](const Index& o) {
    return x({o[0], static_cast<int64_t>(i({o[1], o[2]})), o[3]});
  });
}

TEST(GatherTest, IndicesOutsideAreClippedOrWrapped) {
  const Tensor data = Floats({2, 2}, {10, 11, 12, 13});
  const Tensor indices = Int64s({4}, {-1, 0, 3, 9});
  EXPECT_THAT(Apply("take", {data, indices}).ToDouble(), ElementsAre(10, 10, 13, 13));
  EXPECT_THAT(Apply("take", {data, indices}, {{"mode", "wrap"}}).ToDouble(), ElementsAre(13, 10, 13, 11));
  const Tensor coordinates = Int64s({2, 3}, {0, -1, 9, 1, -2, -9});
  EXPECT_THAT(Apply("gather_nd", {data, coordinates}).ToDouble(), ElementsAre(11, 12, 12));
}

TEST(GatherTest, GathersAtIndexVectors) {
  const Tensor data = Random(T({3, 4, 5}));
  const Tensor indices = Int64s({2, 3}, {2, 0, 1, 3, 0, 1});
  ExpectTensor(Apply("gather_nd", {data, indices}), T({3, 5}), [x = Reader(data), i = Reader(indices)](const Index& o) {
    return x({static_cast<int64_t>(i({0, o[0]})), static_cast<int64_t>(i({1, o[0]})), o[1]});
  });
  const Tensor batched = Int64s({1, 3, 2}, {3, 0, 1, 1, 2, 0});
  ExpectTensor(Apply("gather_nd", {data, batched}, {{"batch_dims", 1}}), T({3, 2, 5}),
               [x = Reader(data), i = Reader(batched)](const Index& o) {
                 return x({o[0], static_cast<int64_t>(i({0, o[0], o[1]})), o[2]});
               });
}

}  // namespace
}  // namespace collage
