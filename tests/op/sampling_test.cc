#include "op_testing.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(GridSampleTest, InfersShapesAndRefuses) {
  EXPECT_EQ(Infer("image.grid_sample", {T({2, 3, 4, 5}), T({2, 6, 7, 2})}), "Tensor[(2, 3, 6, 7), float32]");
  EXPECT_EQ(Infer("image.grid_sample", {T({2, 3, 4, 5, 6}), T({2, 6, 7, 8, 3})}), "Tensor[(2, 3, 6, 7, 8), float32]");
  EXPECT_THAT(Infer("image.grid_sample", {T({2, 3, 4, 5}), T({2, 6, 7, 3})}), HasSubstr("2 coordinates last"));
  EXPECT_THAT(Infer("image.grid_sample", {T({2, 3, 4, 5}), T({2, 6, 7, 2})}, {{"method", "best"}}),
              HasSubstr("attribute 'method' is \"best\""));
  EXPECT_THAT(Infer("image.grid_sample", {T({2, 3, 0, 5}), T({2, 6, 7, 2})}), HasSubstr("expected elements to sample"));
}

Tensor Sample(const std::vector<float>& places, const Attributes& attributes) {
  const Tensor line = Floats({1, 1, 1, 4}, {10, 20, 30, 40});
  std::vector<float> grid;
  for (const float x : places) grid.insert(grid.end(), {x, 0});
  return Apply("image.grid_sample", {line, Floats({1, 1, static_cast<int64_t>(places.size()), 2}, grid)}, attributes);
}

TEST(GridSampleTest, InterpolatesAndPads) {
  // Without aligned corners -1 is the left edge of the first element, half an element before its centre.
  EXPECT_THAT(Sample({-1, -0.75, 0, 0.75, 3}, {}).ToDouble(), ElementsAre(5, 10, 25, 40, 0));
  EXPECT_THAT(Sample({-1, 0, 1, 2}, {{"align_corners", true}, {"padding_mode", "border"}}).ToDouble(), ElementsAre(10, 25, 40, 40));
  EXPECT_THAT(Sample({1.25, -1.25}, {{"method", "nearest"}, {"padding_mode", "reflection"}}).ToDouble(), ElementsAre(40, 10));
  EXPECT_THAT(Sample({-0.25}, {{"method", "bicubic"}}).ToDouble(), ElementsAre(20));
}

TEST(RoiAlignTest, AveragesSamplesOfEachBin) {
  const Tensor data = Floats({1, 1, 2, 2}, {1, 2, 3, 4});
  const Tensor whole = Floats({1, 4}, {0, 0, 1, 1});
  const Tensor batch = Int64s({1}, {0});
  EXPECT_THAT(Apply("vision.roi_align", {data, whole, batch}, {{"pooled_size", Ints{1, 1}}, {"sample_ratio", 1}}).ToDouble(),
              ElementsAre(2.5));
  EXPECT_THAT(Infer("vision.roi_align", {T({1, 1, 2, 2}), T({1, 4}), T({2}, DType::kInt64)}, {{"pooled_size", Ints{1, 1}}}),
              HasSubstr("batch_indices has shape (2,), expected (1,)"));
  EXPECT_THAT(Infer("vision.roi_align", {T({1, 1, 2, 2}), T({1, 4}), T({1}, DType::kInt64)}, {{"pooled_size", Ints{0, 1}}}),
              HasSubstr("attribute 'pooled_size'"));
}

TEST(RoiAlignTest, AlignedRegionsMayHaveNoExtentOrCornersTheWrongWayRound) {
  const Tensor data = Floats({1, 1, 2, 2}, {1, 2, 3, 4});
  const Tensor batch = Int64s({3}, {0, 0, 0});
  const Tensor regions = Floats({3, 4}, {1, 1, 1, 1, 0.5, 0.5, 1.5, 1.5, 1.5, 1.5, 0.5, 0.5});
  const Attributes attributes = {{"pooled_size", Ints{1, 1}}, {"sample_ratio", 2}, {"aligned", true}};
  EXPECT_THAT(Apply("vision.roi_align", {data, regions, batch}, attributes).ToDouble(), ElementsAre(2.5, 2.5, 2.5));
}

TEST(RoiAlignTest, OfRegionsFarLargerThanTheMapOnlyWhatIsOnItTakesTime) {
  const Tensor data = Floats({1, 1, 2, 2}, {4, 4, 4, 4});
  const Tensor batch = Int64s({3}, {0, 0, 0});
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor regions = Floats({3, 4}, {-2e6F, -2e6F, 2e6F, 2e6F, -1e30F, 0, 1e30F, 1, 0, 0, infinity, std::nanf("")});
  const std::vector<double> average = Apply("vision.roi_align", {data, regions, batch}, {{"pooled_size", Ints{1, 1}}}).ToDouble();
  // The map and what is next to it hold nine of 4e6 x 4e6 samples, of which those within hold 4.
  EXPECT_GT(average[0], 0);
  EXPECT_LT(average[0], 9 * 4 / 1.6e13 * 1.01);
  EXPECT_EQ(average[1], 0);
  const Attributes of_most = {{"pooled_size", Ints{1, 1}}, {"mode", std::string("max")}};
  EXPECT_GT(Apply("vision.roi_align", {data, regions, batch}, of_most).ToDouble()[0], 0);
}

TEST(BitsTest, AreAndedShiftedAndReinterpreted) {
  const Tensor a = Make<uint8_t>({3}, DType::kUInt8, {12, 255, 1});
  const Tensor b = Make<uint8_t>({3}, DType::kUInt8, {10, 4, 9});
  EXPECT_THAT(Apply("bitwise_and", {a, b}).ToInt64(), ElementsAre(8, 4, 1));
  EXPECT_THAT(Apply("bitwise_or", {a, b}).ToInt64(), ElementsAre(14, 255, 9));
  EXPECT_THAT(Apply("bitwise_xor", {a, b}).ToInt64(), ElementsAre(6, 251, 8));
  EXPECT_THAT(Apply("bitwise_not", {a}).ToInt64(), ElementsAre(243, 0, 254));
  EXPECT_THAT(Apply("left_shift", {a, b}).ToInt64(), ElementsAre(0, 240, 0));
  EXPECT_THAT(Apply("right_shift", {a, b}).ToInt64(), ElementsAre(0, 15, 0));
  EXPECT_THAT(Apply("reinterpret", {Floats({1}, {1})}, {{"dtype", "int32"}}).ToInt64(), ElementsAre(0x3f800000));
  EXPECT_THAT(Infer("reinterpret", {T({1})}, {{"dtype", "int8"}}), HasSubstr("expected a dtype of as many bits as float32"));
}

}  // namespace
}  // namespace collage
