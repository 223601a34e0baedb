#include <cmath>
#include <limits>

#include "op_testing.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

const TensorType kData = T({1, 3, 7, 8});

TEST(PoolingTest, InfersShapes) {
  EXPECT_EQ(Infer("nn.max_pool2d", {kData}, {{"pool_size", Ints{2, 3}}}), "Tensor[(1, 3, 6, 6), float32]");
  EXPECT_EQ(Infer("nn.avg_pool2d", {kData}, {{"pool_size", 2}, {"strides", 2}}), "Tensor[(1, 3, 3, 4), float32]");
  EXPECT_EQ(Infer("nn.max_pool2d", {kData}, {{"pool_size", 2}, {"strides", 2}, {"ceil_mode", true}}), "Tensor[(1, 3, 4, 4), float32]");
  EXPECT_EQ(Infer("nn.max_pool2d", {kData}, {{"pool_size", 3}, {"strides", 2}, {"padding", Ints{1, 1, 1, 1}}}),
            "Tensor[(1, 3, 4, 4), float32]");
  EXPECT_EQ(Infer("nn.max_pool2d", {kData}, {{"pool_size", 3}, {"dilation", Ints{2, 3}}}), "Tensor[(1, 3, 3, 2), float32]");
  EXPECT_EQ(Infer("nn.max_pool2d", {T({1, 3, 7, 8}, DType::kUInt8)}, {{"pool_size", 7}}), "Tensor[(1, 3, 1, 2), uint8]");
  EXPECT_EQ(Infer("nn.global_avg_pool2d", {kData}), "Tensor[(1, 3, 1, 1), float32]");
  EXPECT_EQ(Infer("nn.global_max_pool2d", {kData}), "Tensor[(1, 3, 1, 1), float32]");
}

TEST(PoolingTest, CeilModeDropsAWindowThatStartsBehindTheData) {
  // ceil((4 - 1) / 2) + 1 = 3 windows of one row, of which the third would start at row 4 of 4.
  EXPECT_EQ(Infer("nn.max_pool2d", {T({1, 1, 4, 5})}, {{"pool_size", 1}, {"strides", 2}, {"ceil_mode", true}}),
            "Tensor[(1, 1, 2, 3), float32]");
}

TEST(PoolingTest, CeilModeKeepsASingleWindowLargerThanTheData) {
  EXPECT_EQ(Infer("nn.max_pool2d", {T({1, 1, 2, 5})}, {{"pool_size", 3}, {"strides", 2}, {"ceil_mode", true}}),
            "Tensor[(1, 1, 1, 2), float32]");
  EXPECT_THAT(Infer("nn.max_pool2d", {T({1, 1, 2, 5})}, {{"pool_size", 4}, {"strides", 2}, {"ceil_mode", true}}),
              HasSubstr("the window spans 4 rows, expected at most the 2"));
}

TEST(PoolingTest, RefusesWhatBreaksAConstraint) {
  const auto refusal = [](const Attributes& attributes, const TensorType& data = kData) {
    return Infer("nn.max_pool2d", {data}, attributes);
  };
  EXPECT_THAT(refusal({}), HasSubstr("attribute 'pool_size' is missing"));
  EXPECT_THAT(refusal({{"pool_size", AttributeValue()}}), HasSubstr("attribute 'pool_size' is missing"));
  EXPECT_THAT(refusal({{"pool_size", 2}}, T({3, 7, 8})), HasSubstr("data has shape (3, 7, 8), expected 4 dimensions"));
  EXPECT_THAT(refusal({{"pool_size", 2}}, T({1, 3, 7, 8}, DType::kBool)), HasSubstr("data has dtype bool"));
  EXPECT_THAT(refusal({{"pool_size", 0}}), HasSubstr("attribute 'pool_size' has the value 0, expected at least 1"));
  EXPECT_THAT(refusal({{"pool_size", 2}, {"strides", 0}}), HasSubstr("attribute 'strides' has the value 0"));
  EXPECT_THAT(refusal({{"pool_size", 2}, {"dilation", 0}}), HasSubstr("attribute 'dilation' has the value 0"));
  EXPECT_THAT(refusal({{"pool_size", 2}, {"padding", -1}}), HasSubstr("attribute 'padding' has the value -1"));
  EXPECT_THAT(refusal({{"pool_size", 2}, {"padding", Ints{0, 0, 0, 2}}}),
              HasSubstr("expected less than the 2 columns that the window spans"));
  EXPECT_THAT(refusal({{"pool_size", 8}}), HasSubstr("the window spans 8 rows, expected at most the 7 of the padded data"));
  EXPECT_THAT(refusal({{"pool_size", 2}, {"layout", "NHWC"}}), HasSubstr("attribute 'layout' is \"NHWC\", expected \"NCHW\""));
  EXPECT_THAT(refusal({{"pool_size", 2}, {"count_include_pad", true}}), HasSubstr("has no attribute 'count_include_pad'"));
  EXPECT_THAT(Infer("nn.avg_pool2d", {T({1, 3, 7, 8}, DType::kInt32)}, {{"pool_size", 2}}), HasSubstr("data has dtype int32"));
  EXPECT_THAT(Infer("nn.global_avg_pool2d", {T({3, 7, 8})}), HasSubstr("expected 4 dimensions"));
  EXPECT_THAT(Infer("nn.global_avg_pool2d", {T({1, 3, 0, 8})}), HasSubstr("expected a height and width of at least 1"));
  EXPECT_THAT(Infer("nn.global_max_pool2d", {T({1, 3, 7, 8}, DType::kInt32)}), HasSubstr("data has dtype int32"));
}

struct Case {
  Ints pool_size;
  Ints strides;
  Ints padding;
  Ints dilation;
  bool ceil_mode;
  Ints output;  // worked out by hand for a 7x8 plane

  [[nodiscard]] Attributes ToAttributes() const {
    return {{"pool_size", pool_size}, {"strides", strides}, {"padding", padding}, {"dilation", dilation}, {"ceil_mode", ceil_mode}};
  }
};

const std::vector<Case> kCases = {
    {{2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}, false, {3, 4}}, {{2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}, true, {4, 4}},
    {{3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, false, {4, 4}}, {{3, 3}, {2, 2}, {1, 0, 2, 1}, {1, 1}, true, {4, 4}},
    {{3, 2}, {3, 1}, {2, 1, 0, 0}, {1, 1}, true, {3, 8}},  {{2, 3}, {2, 3}, {1, 2, 1, 2}, {2, 2}, true, {4, 4}},
    {{7, 8}, {1, 1}, {0, 0, 0, 0}, {1, 1}, false, {1, 1}},
};

TEST(PoolingTest, MaxIgnoresThePadding) {
  constexpr double kLowest = -std::numeric_limits<double>::infinity();
  for (const Case& c : kCases) {
    Tensor data = Random(T({2, 3, 7, 8}));
    for (int64_t i = 0; i < data.ElementCount(); ++i) data.MutableData<float>()[i] -= 3;  // zero would win if it took part
    const Reader x(data);
    ExpectTensor(Apply("nn.max_pool2d", {data}, c.ToAttributes()), T({2, 3, c.output[0], c.output[1]}), [&](const Index& o) {
      double largest = kLowest;
      for (int64_t y = 0; y < c.pool_size[0]; ++y) {
        for (int64_t z = 0; z < c.pool_size[1]; ++z) {
          const Index at = {o[0], o[1], o[2] * c.strides[0] + y * c.dilation[0] - c.padding[0],
                            o[3] * c.strides[1] + z * c.dilation[1] - c.padding[1]};
          largest = std::max(largest, x.Or(at, kLowest));
        }
      }
      return largest;
    });
  }
}

TEST(PoolingTest, MeanCountsPaddingOnlyOnRequest) {
  for (const bool count_include_pad : {false, true}) {
    for (const Case& c : kCases) {
      const Tensor data = Random(T({2, 3, 7, 8}));
      const Reader x(data);
      Attributes attributes = c.ToAttributes();
      attributes.Set("count_include_pad", count_include_pad);
      ExpectTensor(Apply("nn.avg_pool2d", {data}, attributes), T({2, 3, c.output[0], c.output[1]}), [&](const Index& o) {
        double sum = 0;
        int count = 0;
        for (int64_t y = 0; y < c.pool_size[0]; ++y) {
          for (int64_t z = 0; z < c.pool_size[1]; ++z) {
            const int64_t row = o[2] * c.strides[0] + y * c.dilation[0] - c.padding[0];
            const int64_t column = o[3] * c.strides[1] + z * c.dilation[1] - c.padding[1];
            const bool inside = row >= 0 && row < 7 && column >= 0 && column < 8;
            const bool padded = row < 7 + c.padding[2] && column < 8 + c.padding[3];
            if (inside) sum += x({o[0], o[1], row, column});
            count += inside || (count_include_pad && padded);
          }
        }
        return count == 0 ? 0 : sum / count;
      });
    }
  }
}

TEST(PoolingTest, GlobalPoolingCoversThePlane) {
  const Tensor data = Random(T({2, 3, 4, 5}));
  const Reader x(data);
  const auto fold = [&](const Index& o, double start, auto combine) {
    for (int64_t y = 0; y < 4; ++y) {
      for (int64_t z = 0; z < 5; ++z) start = combine(start, x({o[0], o[1], y, z}));
    }
    return start;
  };
  ExpectTensor(Apply("nn.global_avg_pool2d", {data}), T({2, 3, 1, 1}),
               [&](const Index& o) { return fold(o, 0, [](double a, double b) { return a + b; }) / 20; });
  ExpectTensor(Apply("nn.global_max_pool2d", {data}), T({2, 3, 1, 1}),
               [&](const Index& o) { return fold(o, -9, [](double a, double b) { return std::max(a, b); }); });
}

TEST(PoolingTest, MaxOfIntegersAndNaN) {
  const Tensor bytes = Make<int8_t>({1, 1, 1, 3}, DType::kInt8, {-5, -100, -7});
  EXPECT_EQ(Apply("nn.max_pool2d", {bytes}, {{"pool_size", Ints{1, 2}}, {"padding", Ints{0, 1, 0, 0}}}).ToInt64(), (Ints{-5, -5, -7}));
  const Tensor floats = Floats({1, 1, 1, 3}, {1, NAN, 2});
  EXPECT_TRUE(std::isnan(Apply("nn.global_max_pool2d", {floats}).ToDouble()[0]));
}

}  // namespace
}  // namespace collage
