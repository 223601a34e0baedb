#include "op_testing.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

TEST(VolumeTest, InfersShapesAndRefuses) {
  const Type data = T({1, 4, 5, 6, 7});
  EXPECT_EQ(Infer("nn.conv3d", {data, T({8, 2, 3, 2, 1})}, {{"groups", 2}, {"strides", Ints{2, 1, 3}}}),
            "Tensor[(1, 8, 2, 5, 3), float32]");
  EXPECT_EQ(Infer("nn.conv3d_transpose", {data, T({4, 3, 2, 2, 2})}, {{"strides", 2}, {"padding", 1}}),
            "Tensor[(1, 3, 8, 10, 12), float32]");
  EXPECT_EQ(Infer("nn.max_pool3d", {data}, {{"pool_size", 2}, {"strides", 2}}), "Tensor[(1, 4, 2, 3, 3), float32]");
  EXPECT_THAT(Infer("nn.conv3d", {T({1, 4, 5, 6}), T({8, 4, 3, 3, 3})}), HasSubstr("data has shape (1, 4, 5, 6), expected 5 dimensions"));
  EXPECT_THAT(Infer("nn.conv3d", {data, T({8, 4, 9, 1, 1})}), HasSubstr("the window spans 9"));
  EXPECT_THAT(Infer("nn.conv3d", {data, T({8, 3, 1, 1, 1})}), HasSubstr("expected 4 input channels"));
  EXPECT_THAT(Infer("nn.conv3d", {data, T({8, 4, 1, 1, 1})}, {{"groups", 3}}), HasSubstr("attribute 'groups' is 3"));
  EXPECT_THAT(Infer("nn.conv3d", {data, T({8, 4, 1, 1, 1})}, {{"strides", Ints{1, 2}}}), HasSubstr("has 2 values, expected 1 or 3"));
  EXPECT_THAT(Infer("nn.avg_pool3d", {data}), HasSubstr("attribute 'pool_size' is missing"));
}

TEST(VolumeTest, AConvolutionSumsOverItsWindow) {
  const Tensor data = Random(T({2, 2, 3, 4, 3}));
  const Tensor weight = Random(T({2, 1, 2, 2, 3}), 2);
  const Attributes attributes{{"groups", 2}, {"padding", Ints{1, 0, 1, 0, 1, 1}}, {"strides", Ints{1, 2, 1}}, {"dilation", Ints{2, 1, 1}}};
  ExpectTensor(Apply("nn.conv3d", {data, weight}, attributes), T({2, 2, 2, 2, 3}), [x = Reader(data), w = Reader(weight)](const Index& o) {
    double sum = 0;
    for (int64_t d = 0; d < 2; ++d) {
      for (int64_t h = 0; h < 2; ++h) {
        for (int64_t k = 0; k < 3; ++k) {
          sum += w({o[1], 0, d, h, k}) * x.Or({o[0], o[1], o[2] + 2 * d - 1, 2 * o[3] + h, o[4] + k - 1}, 0);
        }
      }
    }
    return sum;
  });
}

TEST(VolumeTest, ATransposedConvolutionIsTheGradientOfAConvolution) {
  // <conv(x), y> = <x, conv_transpose(y)> for all x and y.
  const Tensor x = Random(T({1, 2, 4, 5, 4}));
  const Tensor weight = Random(T({3, 2, 2, 3, 2}), 2);
  const Attributes attributes{{"strides", Ints{2, 1, 1}}, {"padding", Ints{0, 1, 0, 0, 1, 1}}};
  const Tensor forward = Apply("nn.conv3d", {x, weight}, attributes);
  const Tensor y = Random(forward.type(), 3);
  const Tensor backward = Apply("nn.conv3d_transpose", {y, weight}, attributes);
  ASSERT_EQ(ToString(backward.type()), ToString(x.type()));
  const auto product = [](const Tensor& a, const Tensor& b) { return Apply("sum", {Apply("multiply", {a, b})}).ToDouble()[0]; };
  EXPECT_NEAR(product(forward, y), product(x, backward), 1e-5);
}

TEST(VolumeTest, PoolsSeeWhatIsUnderTheWindow) {
  const Tensor data = Random(T({1, 1, 3, 3, 3}));
  const Attributes attributes{{"pool_size", 2}, {"padding", Ints{1, 0, 0, 0, 0, 0}}};
  const auto visit = [x = Reader(data)](const Index& o, auto&& see) {
    for (int64_t k = 0; k < 8; ++k) {
      if (o[2] - 1 + k / 4 >= 0) see(x({0, 0, o[2] - 1 + k / 4, o[3] + k / 2 % 2, o[4] + k % 2}));
    }
  };
  ExpectTensor(Apply("nn.max_pool3d", {data}, attributes), T({1, 1, 3, 2, 2}), [&](const Index& o) {
    double largest = -2;
    visit(o, [&](double value) { largest = std::max(largest, value); });
    return largest;
  });
  for (const bool counts : {false, true}) {
    Attributes averaging = attributes;
    averaging.Set("count_include_pad", counts);
    ExpectTensor(Apply("nn.avg_pool3d", {data}, averaging), T({1, 1, 3, 2, 2}), [&](const Index& o) {
      double sum = 0;
      double count = 0;
      visit(o, [&](double value) {
        sum += value;
        ++count;
      });
      return sum / (counts ? 8 : count);
    });
  }
}

}  // namespace
}  // namespace collage
