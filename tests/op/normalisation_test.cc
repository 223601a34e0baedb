#include <cmath>

#include "op_testing.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

const TensorType kData = T({2, 6, 3, 4});
const TensorType kSix = T({6});

TEST(NormalisationTest, InfersShapes) {
  EXPECT_EQ(Infer("nn.batch_norm", {kData, kSix, kSix, kSix, kSix}),
            "(Tensor[(2, 6, 3, 4), float32], Tensor[(6,), float32], Tensor[(6,), float32])");
  EXPECT_EQ(Infer("nn.layer_norm", {kData, T({4}), T({4})}), "Tensor[(2, 6, 3, 4), float32]");
  EXPECT_EQ(Infer("nn.layer_norm", {kData, T({3}), T({3})}, {{"axis", 2}}), "Tensor[(2, 6, 3, 4), float32]");
  EXPECT_EQ(Infer("nn.instance_norm", {kData, kSix, kSix}), "Tensor[(2, 6, 3, 4), float32]");
  EXPECT_EQ(Infer("nn.group_norm", {kData, kSix, kSix}, {{"num_groups", 3}}), "Tensor[(2, 6, 3, 4), float32]");
  EXPECT_EQ(Infer("nn.lrn", {kData}, {{"size", 3}}), "Tensor[(2, 6, 3, 4), float32]");
}

TEST(NormalisationTest, RefusesWhatBreaksAConstraint) {
  EXPECT_THAT(Infer("nn.batch_norm", {kData, T({5}), kSix, kSix, kSix}), HasSubstr("gamma has shape (5,), expected (6,)"));
  EXPECT_THAT(Infer("nn.batch_norm", {kData, kSix, kSix, kSix, T({6, 1})}), HasSubstr("moving_var has shape (6, 1), expected (6,)"));
  EXPECT_THAT(Infer("nn.batch_norm", {kData, kSix, kSix, kSix, kSix}, {{"axis", 4}}),
              HasSubstr("attribute 'axis' is 4, expected an axis in [-4, 4)"));
  EXPECT_THAT(Infer("nn.batch_norm", {kData, kSix, kSix, kSix, kSix}, {{"epsilon", "small"}}), HasSubstr("expected a number"));
  EXPECT_THAT(Infer("nn.layer_norm", {kData, T({4}, DType::kFloat64), T({4})}), HasSubstr("gamma has dtype float64, expected float32"));
  EXPECT_THAT(Infer("nn.layer_norm", {T({2, 4}, DType::kInt32), T({4}), T({4})}), HasSubstr("data has dtype int32"));
  EXPECT_THAT(Infer("nn.layer_norm", {T({}), T({4}), T({4})}), HasSubstr("expected at least 1 dimensions"));
  EXPECT_THAT(Infer("nn.instance_norm", {T({2, 6}), kSix, kSix}), HasSubstr("data has shape (2, 6), expected at least 3 dimensions"));
  EXPECT_THAT(Infer("nn.instance_norm", {kData, T({2}), T({2})}, {{"axis", 0}}), HasSubstr("attribute 'axis' is the batch dimension"));
  EXPECT_THAT(Infer("nn.group_norm", {kData, kSix, kSix}), HasSubstr("attribute 'num_groups' is missing"));
  EXPECT_THAT(Infer("nn.group_norm", {kData, kSix, kSix}, {{"num_groups", 4}}), HasSubstr("expected a divisor of the 6 channels"));
  EXPECT_THAT(Infer("nn.group_norm", {kData, kSix, kSix}, {{"num_groups", 0}}), HasSubstr("expected a divisor of the 6 channels"));
  EXPECT_THAT(Infer("nn.group_norm", {kData, T({2}), T({2})}, {{"num_groups", 2}, {"axis", 0}}), HasSubstr("the batch dimension"));
  EXPECT_THAT(Infer("nn.lrn", {kData}, {{"size", 0}}), HasSubstr("attribute 'size' is 0, expected at least 1"));
  EXPECT_THAT(Infer("nn.lrn", {kData}, {{"axis", -5}}), HasSubstr("expected an axis in [-4, 4)"));
}

Tensor Positive(Shape shape, uint64_t seed) {
  Tensor tensor(T(std::move(shape)));
  FillRandom(tensor, seed, 0.1, 2.0);
  return tensor;
}

TEST(NormalisationTest, BatchNormUsesTheGivenStatistics) {
  const Tensor data = Random(kData, 1);
  const std::vector<Tensor> p = {Random(kSix, 2), Random(kSix, 3), Random(kSix, 4), Positive({6}, 5)};
  const Reader x(data), gamma(p[0]), beta(p[1]), mean(p[2]), variance(p[3]);
  const std::vector<Tensor> outputs = ApplyAll("nn.batch_norm", {data, p[0], p[1], p[2], p[3]}, {{"epsilon", 1e-3}});
  ASSERT_EQ(outputs.size(), 3u);
  ExpectTensor(outputs[0], kData,
               [&](const Index& o) { return (x(o) - mean({o[1]})) / std::sqrt(variance({o[1]}) + 1e-3) * gamma({o[1]}) + beta({o[1]}); });
  EXPECT_TRUE(BitwiseEqual(outputs[1], p[2]));
  EXPECT_TRUE(BitwiseEqual(outputs[2], p[3]));
  ExpectTensor(Apply("nn.batch_norm", {data, p[0], p[1], p[2], p[3]}, {{"center", false}, {"scale", false}}), kData,
               [&](const Index& o) { return (x(o) - mean({o[1]})) / std::sqrt(variance({o[1]}) + 1e-5); });
}

TEST(NormalisationTest, BatchNormAlongTheLastAxis) {
  const Tensor data = Random(T({3, 2, 6}), 1);
  const std::vector<Tensor> p = {Random(kSix, 2), Random(kSix, 3), Random(kSix, 4), Positive({6}, 5)};
  const Reader x(data), gamma(p[0]), beta(p[1]), mean(p[2]), variance(p[3]);
  ExpectTensor(Apply("nn.batch_norm", {data, p[0], p[1], p[2], p[3]}, {{"axis", -1}}), data.type(),
               [&](const Index& o) { return (x(o) - mean({o[2]})) / std::sqrt(variance({o[2]}) + 1e-5) * gamma({o[2]}) + beta({o[2]}); });
}

/// (x - mean) / sqrt(variance + 1e-5) over the places where `belongs` holds.
double Normalised(const Reader& x, const Index& o, const std::vector<Index>& places) {
  double sum = 0;
  double squares = 0;
  for (const Index& place : places) {
    sum += x(place);
    squares += x(place) * x(place);
  }
  const auto count = static_cast<double>(places.size());
  const double mean = sum / count;
  return (x(o) - mean) / std::sqrt(squares / count - mean * mean + 1e-5);
}

TEST(NormalisationTest, LayerNormNormalisesOneAxis) {
  for (const int axis : {-1, 1, 0}) {
    const Tensor data = Random(T({3, 5, 4}), 1);
    const auto dimension = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
    const int64_t extent = data.shape()[dimension];
    const Tensor g = Random(T({extent}), 2);
    const Tensor b = Random(T({extent}), 3);
    const Reader x(data), gamma(g), beta(b);
    ExpectTensor(Apply("nn.layer_norm", {data, g, b}, {{"axis", axis}}), data.type(), [&](const Index& o) {
      std::vector<Index> places;
      for (int64_t i = 0; i < extent; ++i) {
        places.push_back(o);
        places.back()[dimension] = i;
      }
      return Normalised(x, o, places) * gamma({o[dimension]}) + beta({o[dimension]});
    });
  }
}

std::vector<Index> GroupPlaces(const Index& o, int64_t channels_of_group) {
  std::vector<Index> places;
  const int64_t first = o[1] / channels_of_group * channels_of_group;
  for (int64_t c = first; c < first + channels_of_group; ++c) {
    for (int64_t y = 0; y < 3; ++y) {
      for (int64_t z = 0; z < 4; ++z) places.push_back({o[0], c, y, z});
    }
  }
  return places;
}

TEST(NormalisationTest, InstanceAndGroupNormNormaliseChannelsOfOneImage) {
  const Tensor data = Random(kData, 1);
  const Tensor g = Random(kSix, 2);
  const Tensor b = Random(kSix, 3);
  const Reader x(data), gamma(g), beta(b);
  for (const int64_t groups : {1, 2, 3, 6}) {
    const auto formula = [&](const Index& o) { return Normalised(x, o, GroupPlaces(o, 6 / groups)) * gamma({o[1]}) + beta({o[1]}); };
    ExpectTensor(Apply("nn.group_norm", {data, g, b}, {{"num_groups", groups}}), kData, formula);
    if (groups == 6) ExpectTensor(Apply("nn.instance_norm", {data, g, b}), kData, formula);
  }
}

TEST(NormalisationTest, InstanceNormAlongTheLastAxis) {
  const Tensor data = Random(T({2, 5, 6}), 1);
  const Tensor g = Random(kSix, 2);
  const Tensor b = Random(kSix, 3);
  const Reader x(data), gamma(g), beta(b);
  ExpectTensor(Apply("nn.instance_norm", {data, g, b}, {{"axis", -1}}), data.type(), [&](const Index& o) {
    std::vector<Index> places;
    for (int64_t y = 0; y < 5; ++y) places.push_back({o[0], y, o[2]});
    return Normalised(x, o, places) * gamma({o[2]}) + beta({o[2]});
  });
}

TEST(NormalisationTest, LrnSumsOverNeighbouringChannels) {
  for (const int64_t size : {1, 2, 3, 4, 5, 9}) {
    const Tensor data = Random(kData, 1);
    const Reader x(data);
    const Attributes attributes = {{"size", size}, {"alpha", 0.5}, {"beta", 0.75}, {"bias", 1.5}};
    ExpectTensor(Apply("nn.lrn", {data}, attributes), kData, [&](const Index& o) {
      const int64_t before = static_cast<int64_t>(std::floor(static_cast<double>(size - 1) / 2));
      const int64_t after = static_cast<int64_t>(std::ceil(static_cast<double>(size - 1) / 2));
      double squares = 0;
      for (int64_t c = o[1] - before; c <= o[1] + after; ++c) squares += std::pow(x.Or({o[0], c, o[2], o[3]}, 0), 2);
      return x(o) / std::pow(1.5 + 0.5 / static_cast<double>(size) * squares, 0.75);
    });
  }
}

}  // namespace
}  // namespace collage
