#include "collage/backend/xsmm/tiling.h"

#include <gmock/gmock.h>

#include <numeric>

#include "collage/backend/xsmm/packing.h"

namespace collage::xsmm {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(TilingTest, RowsThatNoTileDividesAreCutEvenly) {
  EXPECT_THAT(CutEvenly(5, 16, 1), ElementsAre(Pair(0, 5)));
  EXPECT_THAT(CutEvenly(33, 16, 1), ElementsAre(Pair(0, 11), Pair(11, 11), Pair(22, 11)));
  const auto cuts = CutEvenly(197, 16, 1);
  ASSERT_EQ(cuts.size(), 13U);
  int64_t next = 0;
  for (const auto& [first, count] : cuts) {
    EXPECT_EQ(first, next);
    EXPECT_TRUE(count == 15 || count == 16) << count;
    next = first + count;
  }
  EXPECT_EQ(next, 197);
}

TEST(TilingTest, ColumnsAreCutAtWholeVectors) {
  EXPECT_THAT(CutEvenly(196, 64, 16), ElementsAre(Pair(0, 64), Pair(64, 48), Pair(112, 48), Pair(160, 36)));
  EXPECT_THAT(CutEvenly(128, 64, 16), ElementsAre(Pair(0, 64), Pair(64, 64)));
  EXPECT_THAT(CutEvenly(3, 64, 16), ElementsAre(Pair(0, 3)));
  EXPECT_THAT(CutEvenly(50, 48, 8), ElementsAre(Pair(0, 32), Pair(32, 18)));
}

TEST(PackingTest, PanelsHoldTheirColumnsForEachTerm) {
  // Two matrices of 2 terms x 2 deep x 3 columns, stored [matrix][column][term][depth]; panels of 2 columns and of 1.
  std::vector<float> constant(24);
  std::iota(constant.begin(), constant.end(), 0.0F);
  Tiling tiling;
  tiling.depth = 2;
  tiling.panels = {{0, 0, 2}, {8, 2, 1}};
  tiling.packing = Packing{1, 4, {0, 12}, {0, 2}};
  std::vector<float> packed(static_cast<size_t>(PackedCount(tiling)), -1);
  Pack(tiling, constant.data(), packed.data());
  EXPECT_THAT(packed, ElementsAre(0, 4, 1, 5, 2, 6, 3, 7, 8, 9, 10, 11, 12, 16, 13, 17, 14, 18, 15, 19, 20, 21, 22, 23));
}

TEST(PackingTest, TransposesAPanel) {
  constexpr int64_t kColumns = 29;
  constexpr int64_t kDepth = 37;
  constexpr int64_t kStride = 40;
  std::vector<float> source(kColumns * kStride);
  std::iota(source.begin(), source.end(), 0.0F);
  std::vector<float> target(kColumns * kDepth + 1, -1);
  TransposePanel(source.data(), kStride, kColumns, kDepth, target.data());
  for (int64_t d = 0; d < kDepth; ++d) {
    for (int64_t c = 0; c < kColumns; ++c)
      EXPECT_EQ(target[static_cast<size_t>(d * kColumns + c)], source[static_cast<size_t>(c * kStride + d)]) << d << " " << c;
  }
  EXPECT_EQ(target.back(), -1);
}

}  // namespace
}  // namespace collage::xsmm
