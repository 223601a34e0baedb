#include <cmath>

#include "op_testing.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSteps = 3;
constexpr int64_t kSize = 2;
constexpr int64_t kWidth = 3;

/// Two heads of queries share one of keys.
std::vector<Tensor> Arguments() {
  return {Random(T({1, 2, kSteps, kSize}), 1), Random(T({1, 1, kSteps, kSize}), 2), Random(T({1, 1, kSteps, kWidth}), 3),
          Random(T({1, 1, kSize, kWidth}), 4), Random(T({1, 1, kSteps, kSize}), 5), Random(T({1, 1, kSteps, 1}), 6)};
}

/// The definition, element by element.
std::vector<double> Expected(const std::vector<Tensor>& a, bool delta) {
  std::vector<double> state = a[3].ToDouble();
  std::vector<double> result(2 * kSteps * kWidth);
  for (int64_t t = 0; t < kSteps; ++t) {
    for (int64_t v = 0; v < kWidth; ++v) {
      double known = 0;
      for (int64_t k = 0; k < kSize; ++k) {
        double& s = state[static_cast<size_t>(k * kWidth + v)];
        s *= std::exp(Reader(a[4])({0, 0, t, k}));
        known += s * Reader(a[1])({0, 0, t, k});
      }
      const double added = Reader(a[5])({0, 0, t, 0}) * (Reader(a[2])({0, 0, t, v}) - (delta ? known : 0));
      for (int64_t k = 0; k < kSize; ++k) state[static_cast<size_t>(k * kWidth + v)] += added * Reader(a[1])({0, 0, t, k});
      for (int64_t h = 0; h < 2; ++h) {
        double sum = 0;
        for (int64_t k = 0; k < kSize; ++k) sum += state[static_cast<size_t>(k * kWidth + v)] * Reader(a[0])({0, h, t, k});
        result[static_cast<size_t>((h * kSteps + t) * kWidth + v)] = sum;
      }
    }
  }
  return result;
}

TEST(LinearAttentionTest, FollowsItsRecurrence) {
  const std::vector<Tensor> a = Arguments();
  for (const bool delta : {false, true}) {
    const std::vector<Tensor> result = ApplyAll("nn.linear_attention", a, {{"delta", delta}});
    const std::vector<double> expected = Expected(a, delta);
    const std::vector<double> found = result[0].ToDouble();
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << delta;
  }
}

TEST(LinearAttentionTest, InfersTypesAndRefuses) {
  const auto infer = [](const Shape& query, const Shape& state, const Shape& beta) {
    return Infer("nn.linear_attention",
                 {T(query), T({1, 1, kSteps, kSize}), T({1, 1, kSteps, kWidth}), T(state), T({1, 1, kSteps, kSize}), T(beta)});
  };
  const Shape beta{1, 1, kSteps, 1};
  EXPECT_EQ(infer({1, 2, kSteps, kSize}, {1, 1, kSize, kWidth}, beta), "(Tensor[(1, 2, 3, 3), float32], Tensor[(1, 1, 2, 3), float32])");
  EXPECT_THAT(infer({1, 2, 4, kSize}, {1, 1, kSize, kWidth}, beta), HasSubstr("key has shape (1, 1, 3, 2), expected (1, 1, 4, 2)"));
  EXPECT_THAT(infer({1, 2, kSteps, kSize}, {1, 1, 2, 2}, beta), HasSubstr("state has shape"));
  EXPECT_THAT(infer({1, 2, kSteps, kSize}, {1, 1, kSize, kWidth}, {1, 1, kSteps, 2}), HasSubstr("beta has shape"));
  EXPECT_THAT(infer({1, 2, kSteps}, {1, 1, kSize, kWidth}, beta), HasSubstr("query has shape (1, 2, 3), expected 4 dimensions"));
}

}  // namespace
}  // namespace collage
