#include "op_testing.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

TEST(MatmulTest, InfersShapes) {
  EXPECT_EQ(Infer("nn.dense", {T({3, 5}), T({7, 5})}), "Tensor[(3, 7), float32]");
  EXPECT_EQ(Infer("nn.dense", {T({5}), T({7, 5})}), "Tensor[(7,), float32]");
  EXPECT_EQ(Infer("nn.dense", {T({2, 3, 5}), T({7, 5})}, {{"units", 7}, {"out_dtype", "float32"}}), "Tensor[(2, 3, 7), float32]");
  EXPECT_EQ(Infer("nn.dense", {T({3, 5}), T({7, 5})}, {{"units", AttributeValue()}, {"out_dtype", ""}}), "Tensor[(3, 7), float32]");
  EXPECT_EQ(Infer("nn.matmul", {T({3, 5}), T({5, 7})}), "Tensor[(3, 7), float32]");
  EXPECT_EQ(Infer("nn.matmul", {T({4, 1, 5, 3}), T({2, 5, 7})}, {{"transpose_a", true}}), "Tensor[(4, 2, 3, 7), float32]");
  EXPECT_EQ(Infer("nn.matmul", {T({3, 5}), T({7, 5})}, {{"transpose_b", true}, {"units", 7}}), "Tensor[(3, 7), float32]");
  EXPECT_EQ(Infer("nn.batch_matmul", {T({2, 3, 5}), T({2, 7, 5})}), "Tensor[(2, 3, 7), float32]");
  EXPECT_EQ(Infer("nn.batch_matmul", {T({2, 3, 5}), T({1, 5, 7})}, {{"transpose_b", false}}), "Tensor[(2, 3, 7), float32]");
}

TEST(MatmulTest, RefusesWhatBreaksAConstraint) {
  EXPECT_THAT(Infer("nn.dense", {T({}), T({7, 5})}), HasSubstr("data has shape (), expected at least 1 dimensions"));
  EXPECT_THAT(Infer("nn.dense", {T({3, 5}), T({7, 5, 1})}), HasSubstr("weight has shape (7, 5, 1), expected 2 dimensions"));
  EXPECT_THAT(Infer("nn.dense", {T({3, 5}), T({5, 7})}), HasSubstr("weight has shape (5, 7), expected 5 columns as data of shape (3, 5)"));
  EXPECT_THAT(Infer("nn.dense", {T({3, 5}), T({7, 5})}, {{"units", 5}}), HasSubstr("attribute 'units' is 5, expected 7"));
  EXPECT_THAT(Infer("nn.dense", {T({3, 5}, DType::kBool), T({7, 5}, DType::kBool)}), HasSubstr("data has dtype bool"));
  EXPECT_THAT(Infer("nn.dense", {T({3, 5}), T({7, 5}, DType::kFloat64)}), HasSubstr("weight has dtype float64"));
  EXPECT_THAT(Infer("nn.dense", {T({3, 5}), T({7, 5})}, {{"out_dtype", "int32"}}), HasSubstr("attribute 'out_dtype'"));
  EXPECT_THAT(Infer("nn.matmul", {T({5}), T({5, 7})}), HasSubstr("a has shape (5,), expected at least 2 dimensions"));
  EXPECT_THAT(Infer("nn.matmul", {T({3, 5}), T({5})}), HasSubstr("b has shape (5,), expected at least 2 dimensions"));
  EXPECT_THAT(Infer("nn.matmul", {T({3, 5}), T({6, 7})}), HasSubstr("b has shape (6, 7), expected 5 rows to fit a of shape (3, 5)"));
  EXPECT_THAT(Infer("nn.matmul", {T({3, 5}), T({5, 7})}, {{"transpose_b", true}}), HasSubstr("(transposed), expected 5 columns"));
  EXPECT_THAT(Infer("nn.matmul", {T({2, 3, 5}), T({3, 5, 7})}), HasSubstr("shapes (2,) and (3,) do not broadcast"));
  EXPECT_THAT(Infer("nn.matmul", {T({3, 5}), T({5, 7})}, {{"units", 3}}), HasSubstr("attribute 'units' is 3, expected 7"));
  EXPECT_THAT(Infer("nn.matmul", {T({3, 5}), T({5, 7})}, {{"transpose_a", "yes"}}), HasSubstr("expected True or False"));
  EXPECT_THAT(Infer("nn.batch_matmul", {T({3, 5}), T({3, 5, 7})}), HasSubstr("a has shape (3, 5), expected 3 dimensions"));
  EXPECT_THAT(Infer("nn.batch_matmul", {T({2, 3, 5}), T({3, 7, 5})}), HasSubstr("do not broadcast"));
}

TEST(MatmulTest, DenseMultipliesByTheTransposedWeight) {
  for (const int64_t rows : {1, 3, 40}) {
    for (const int64_t depth : {1, 5, 300}) {
      const Tensor data = Random(T({2, rows, depth}), 1);
      const Tensor weight = Random(T({37, depth}), 2);
      ExpectTensor(Apply("nn.dense", {data, weight}), T({2, rows, 37}), [x = Reader(data), w = Reader(weight), depth](const Index& o) {
        double sum = 0;
        for (int64_t k = 0; k < depth; ++k) sum += x({o[0], o[1], k}) * w({o[2], k});
        return sum;
      });
    }
  }
}

TEST(MatmulTest, MultipliesWithBothTranspositions) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const auto& [m, n, k] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{{1, 1, 1}, {2, 33, 7}, {600, 3, 9}, {5, 140, 270}}) {
        const Tensor a = Random(T(transpose_a ? Shape{k, m} : Shape{m, k}, DType::kFloat64), 1);
        const Tensor b = Random(T(transpose_b ? Shape{n, k} : Shape{k, n}, DType::kFloat64), 2);
        const Reader x(a);
        const Reader y(b);
        ExpectTensor(
            Apply("nn.matmul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}}), T({m, n}, DType::kFloat64),
            [&, depth = k](const Index& o) {
              double sum = 0;
              for (int64_t i = 0; i < depth; ++i)
                sum += x(transpose_a ? Index{i, o[0]} : Index{o[0], i}) * y(transpose_b ? Index{o[1], i} : Index{i, o[1]});
              return sum;
            },
            1e-13);
      }
    }
  }
}

TEST(MatmulTest, BroadcastsTheBatch) {
  const Tensor a = Random(T({2, 1, 3, 4}), 1);
  const Tensor b = Random(T({5, 4, 6}), 2);
  ExpectTensor(Apply("nn.matmul", {a, b}), T({2, 5, 3, 6}), [x = Reader(a), y = Reader(b)](const Index& o) {
    double sum = 0;
    for (int64_t k = 0; k < 4; ++k) sum += x({o[0], 0, o[2], k}) * y({o[1], k, o[3]});
    return sum;
  });
}

TEST(MatmulTest, BatchMatmulTransposesTheSecondByDefault) {
  const Tensor a = Random(T({3, 2, 4}), 1);
  const Tensor b = Random(T({3, 5, 4}), 2);
  ExpectTensor(Apply("nn.batch_matmul", {a, b}), T({3, 2, 5}), [x = Reader(a), y = Reader(b)](const Index& o) {
    double sum = 0;
    for (int64_t k = 0; k < 4; ++k) sum += x({o[0], o[1], k}) * y({o[0], o[2], k});
    return sum;
  });
}

TEST(MatmulTest, AnEmptySumIsZero) {
  ExpectTensor(Apply("nn.matmul", {Random(T({2, 0})), Random(T({0, 3}))}), T({2, 3}), [](const Index&) { return 0.0; });
  EXPECT_EQ(Apply("nn.matmul", {Random(T({0, 2})), Random(T({2, 3}))}).ElementCount(), 0);
}

}  // namespace
}  // namespace collage
