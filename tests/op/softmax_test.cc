#include <cmath>

#include "op_testing.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

TEST(SoftmaxTest, KeepsTheType) {
  EXPECT_EQ(Infer("nn.softmax", {T({2, 3})}), "Tensor[(2, 3), float32]");
  EXPECT_EQ(Infer("nn.log_softmax", {T({2, 3}, DType::kFloat64)}, {{"axis", 0}}), "Tensor[(2, 3), float64]");
}

TEST(SoftmaxTest, RefusesWhatBreaksAConstraint) {
  EXPECT_THAT(Infer("nn.softmax", {T({2, 3})}, {{"axis", 2}}), HasSubstr("expected an axis in [-2, 2)"));
  EXPECT_THAT(Infer("nn.softmax", {T({})}), HasSubstr("expected an axis in"));
  EXPECT_THAT(Infer("nn.log_softmax", {T({2, 3}, DType::kInt32)}), HasSubstr("data has dtype int32"));
}

TEST(SoftmaxTest, DividesExponentialsByTheirSum) {
  const Tensor data = Random(T({3, 4, 5}));
  const Reader x(data);
  for (const int axis : {-1, 0, 1}) {
    const auto dimension = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
    const auto softmax = [&](const Index& o) {
      double sum = 0;
      Index at = o;
      for (at[dimension] = 0; at[dimension] < data.shape()[dimension]; ++at[dimension]) sum += std::exp(x(at));
      return std::exp(x(o)) / sum;
    };
    ExpectTensor(Apply("nn.softmax", {data}, {{"axis", axis}}), data.type(), softmax);
    ExpectTensor(Apply("nn.log_softmax", {data}, {{"axis", axis}}), data.type(), [&](const Index& o) { return std::log(softmax(o)); });
  }
}

TEST(SoftmaxTest, LargeValuesDoNotOverflow) {
  const Tensor data = Floats({3}, {1000, 1001, -1000});
  const double e = std::exp(1.0);
  const std::vector<double> softmax = Apply("nn.softmax", {data}).ToDouble();
  EXPECT_NEAR(softmax[0], 1 / (1 + e), 1e-7);
  EXPECT_NEAR(softmax[1], e / (1 + e), 1e-7);
  EXPECT_EQ(softmax[2], 0);
  EXPECT_NEAR(Apply("nn.log_softmax", {data}).ToDouble()[2], -2001 - std::log1p(1 / e), 1e-3);
}

}  // namespace
}  // namespace collage
