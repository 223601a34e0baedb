#include "op_testing.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RoiPoolTest, TakesTheLargestOfEachBin) {
  const Tensor data = Floats({1, 1, 3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const auto pool = [&](const std::vector<float>& roi, const Attributes& attributes) {
    return Apply("vision.roi_pool", {data, Floats({1, 5}, roi)}, attributes).ToDouble();
  };
  EXPECT_THAT(pool({0, 0, 0, 3, 2}, {{"pooled_size", Ints{1, 2}}}), ElementsAre(10, 12));
  // Ends are rounded after they are scaled, and belong to the region.
  EXPECT_THAT(pool({0, 2, 0, 3, 1}, {{"pooled_size", Ints{1, 1}}, {"spatial_scale", 0.5}}), ElementsAre(7));
  EXPECT_THAT(pool({0, 9, 9, 12, 12}, {{"pooled_size", Ints{1, 1}}}), ElementsAre(0));
  EXPECT_THAT(pool({7, 0, 0, 0, 0}, {{"pooled_size", Ints{1, 1}}}), ElementsAre(1));
}

TEST(RoiPoolTest, Refuses) {
  const Attributes one{{"pooled_size", Ints{1, 1}}};
  EXPECT_EQ(Infer("vision.roi_pool", {T({1, 2, 3, 4}), T({6, 5})}, one), "Tensor[(6, 2, 1, 1), float32]");
  EXPECT_THAT(Infer("vision.roi_pool", {T({1, 2, 3}), T({6, 5})}, one), HasSubstr("expected 4 dimensions"));
  EXPECT_THAT(Infer("vision.roi_pool", {T({1, 2, 3, 4}), T({6, 4})}, one), HasSubstr("rois has shape (6, 4), expected (6, 5)"));
  EXPECT_THAT(Infer("vision.roi_pool", {T({0, 2, 3, 4}), T({6, 5})}, one), HasSubstr("expected an image"));
  EXPECT_THAT(Infer("vision.roi_pool", {T({1, 2, 3, 4}), T({6, 5})}, {{"pooled_size", Ints{1}}}), HasSubstr("'pooled_size'"));
}

}  // namespace
}  // namespace collage
