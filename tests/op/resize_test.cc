#include <cmath>

#include "op_testing.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TensorType kData = T({2, 12, 4, 6});

TEST(ResizeTest, InfersShapes) {
  EXPECT_EQ(Infer("nn.depth_to_space", {kData}, {{"block_size", 2}}), "Tensor[(2, 3, 8, 12), float32]");
  EXPECT_EQ(Infer("nn.space_to_depth", {kData}, {{"block_size", 2}}), "Tensor[(2, 48, 2, 3), float32]");
  EXPECT_EQ(Infer("nn.upsampling", {kData}, {{"scale_h", 2}, {"scale_w", 1.5}}), "Tensor[(2, 12, 8, 9), float32]");
  EXPECT_EQ(Infer("nn.upsampling", {T({2, 12, 4, 6}, DType::kInt8)}), "Tensor[(2, 12, 4, 6), int8]");
}

TEST(ResizeTest, RefusesWhatBreaksAConstraint) {
  EXPECT_THAT(Infer("nn.depth_to_space", {kData}), HasSubstr("attribute 'block_size' is missing"));
  EXPECT_THAT(Infer("nn.depth_to_space", {kData}, {{"block_size", 0}}), HasSubstr("attribute 'block_size' is 0, expected at least 1"));
  EXPECT_THAT(Infer("nn.depth_to_space", {kData}, {{"block_size", 5}}), HasSubstr("data has 12 channels, expected a multiple of"));
  EXPECT_THAT(Infer("nn.depth_to_space", {kData}, {{"block_size", 2}, {"mode", "RCD"}}), HasSubstr("attribute 'mode' is \"RCD\""));
  EXPECT_THAT(Infer("nn.depth_to_space", {T({12, 4, 6})}, {{"block_size", 2}}), HasSubstr("expected 4 dimensions"));
  EXPECT_THAT(Infer("nn.space_to_depth", {kData}, {{"block_size", 4}}), HasSubstr("multiples of block_size=4"));
  EXPECT_THAT(Infer("nn.space_to_depth", {kData}, {{"block_size", 2}, {"layout", "NHWC"}}), HasSubstr("attribute 'layout' is \"NHWC\""));
  EXPECT_THAT(Infer("nn.upsampling", {kData}, {{"scale_h", 0}}), HasSubstr("attribute 'scale_h' is 0f, expected a positive factor"));
  EXPECT_THAT(Infer("nn.upsampling", {kData}, {{"scale_w", 0.01}}), HasSubstr("attribute 'scale_w' leaves nothing of data"));
  EXPECT_THAT(Infer("nn.upsampling", {kData}, {{"method", "bicubic"}}), HasSubstr("attribute 'method' is \"bicubic\""));
  EXPECT_THAT(Infer("nn.upsampling", {T({1, 1, 2, 2}, DType::kInt8)}, {{"method", "bilinear"}}), HasSubstr("data has dtype int8"));
}

TEST(ResizeTest, DepthToSpaceInBothOrders) {
  const Tensor data = Random(T({2, 18, 2, 4}));
  const Reader x(data);
  ExpectTensor(Apply("nn.depth_to_space", {data}, {{"block_size", 3}}), T({2, 2, 6, 12}), [&](const Index& o) {
    return x({o[0], (o[2] % 3 * 3 + o[3] % 3) * 2 + o[1], o[2] / 3, o[3] / 3});
  });
  ExpectTensor(Apply("nn.depth_to_space", {data}, {{"block_size", 3}, {"mode", "CRD"}}), T({2, 2, 6, 12}), [&](const Index& o) {
    return x({o[0], o[1] * 9 + o[2] % 3 * 3 + o[3] % 3, o[2] / 3, o[3] / 3});
  });
}

TEST(ResizeTest, SpaceToDepthUndoesDepthToSpace) {
  const Tensor data = Random(T({2, 12, 3, 5}, DType::kInt64));
  const Tensor space = Apply("nn.depth_to_space", {data}, {{"block_size", 2}});
  EXPECT_TRUE(BitwiseEqual(Apply("nn.space_to_depth", {space}, {{"block_size", 2}}), data));
}

TEST(ResizeTest, NearestNeighbour) {
  for (const DType dtype : {DType::kFloat32, DType::kUInt8, DType::kInt16, DType::kInt64}) {
    const Tensor data = Random(T({1, 2, 3, 4}, dtype));
    ExpectTensor(Apply("nn.upsampling", {data}, {{"scale_h", 2}, {"scale_w", 3}}), T({1, 2, 6, 12}, dtype),
                 [x = Reader(data)](const Index& o) {
                   return x({o[0], o[1], o[2] / 2, o[3] / 3});
                 });
  }
  const Tensor row = Floats({1, 1, 1, 4}, {0, 1, 2, 3});
  EXPECT_THAT(Apply("nn.upsampling", {row}, {{"scale_w", 1.5}}).ToDouble(), ElementsAre(0, 0, 1, 2, 2, 3));
  EXPECT_THAT(Apply("nn.upsampling", {row}, {{"scale_w", 0.5}}).ToDouble(), ElementsAre(0, 2));
}

TEST(ResizeTest, Bilinear) {
  const Tensor row = Floats({1, 1, 1, 3}, {0, 10, 40});
  EXPECT_THAT(Apply("nn.upsampling", {row}, {{"scale_w", 2}, {"method", "bilinear"}}).ToDouble(), ElementsAre(0, 5, 10, 25, 40, 40));
  const Attributes align = {{"scale_w", 5.0 / 3 + 1e-9}, {"method", "bilinear"}, {"align_corners", true}};
  EXPECT_THAT(Apply("nn.upsampling", {row}, align).ToDouble(), ElementsAre(0, 5, 10, 25, 40));
  const Tensor data = Random(T({1, 2, 3, 4}));
  ExpectTensor(Apply("nn.upsampling", {data}, {{"scale_h", 3}, {"scale_w", 2}, {"method", "bilinear"}}), T({1, 2, 9, 8}),
               [x = Reader(data)](const Index& o) {
                 double sum = 0;
                 for (int64_t y = 0; y < 3; ++y) {
                   for (int64_t z = 0; z < 4; ++z) {
                     // The hat function around each element; beyond the last one its value goes on.
                     const double row_place = std::min(static_cast<double>(o[2]) / 3, 2.0);
                     const double column_place = std::min(static_cast<double>(o[3]) / 2, 3.0);
                     const double row_weight = std::max(0.0, 1 - std::abs(row_place - static_cast<double>(y)));
                     const double column_weight = std::max(0.0, 1 - std::abs(column_place - static_cast<double>(z)));
                     sum += row_weight * column_weight * x({o[0], o[1], y, z});
                   }
                 }
                 return sum;
               });
}

}  // namespace
}  // namespace collage
