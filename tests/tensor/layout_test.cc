#include "collage/tensor/layout.h"

#include <gtest/gtest.h>

namespace collage {
namespace {

TEST(LayoutTest, ParsesOuterOrderAndInnerBlocks) {
  const Layout layout = Layout::Of("ABcd16b4a");
  ASSERT_EQ(layout.blocks().size(), 2u);
  EXPECT_EQ(layout.blocks()[0].dimension, 1u);
  EXPECT_EQ(layout.blocks()[0].extent, 16);
  EXPECT_EQ(layout.blocks()[1].dimension, 0u);
  EXPECT_EQ(layout.ToString(), "ABcd16b4a");
}

TEST(LayoutTest, RowMajorTagsAreThePlainLayout) {
  EXPECT_TRUE(Layout::Of("abcd").IsPlain());
  EXPECT_EQ(Layout::Of("abcd"), Layout());
  EXPECT_FALSE(Layout::Of("acdb").IsPlain());
}

TEST(LayoutTest, RefusesMalformedTags) {
  for (const char* tag : {"abd", "aa", "abcd16", "abcd16b", "aBcd", "aBcd16e", "16b", "aBcd0b", "aBcd1b"})
    EXPECT_FALSE(Layout::Parse(tag)) << tag;
}

TEST(LayoutTest, BlockedDimensionsArePadded) {
  const TensorType type{{1, 3, 2, 2}, DType::kFloat32};
  EXPECT_EQ(PhysicalByteCount(type, Layout()), 48u);
  EXPECT_EQ(PhysicalByteCount(type, Layout::Of("acdb")), 48u);
  EXPECT_EQ(PhysicalByteCount(type, Layout::Of("aBcd16b")), 256u);
}

TEST(LayoutTest, SaysInWhichTypeElementsAreStored) {
  const Layout layout = Layout::Of("aBcd16b:bf16");
  EXPECT_EQ(layout.stored(), DType::kBFloat16);
  EXPECT_EQ(layout.ToString(), "aBcd16b:bf16");
  EXPECT_EQ(layout, Layout::Of("aBcd16b").StoredAs(DType::kBFloat16));
  EXPECT_EQ(layout.StoredAs(DType::kFloat32), Layout::Of("aBcd16b"));
  const TensorType type{{1, 3, 2, 2}, DType::kFloat32};
  EXPECT_EQ(PhysicalByteCount(type, layout), 128u);

  const Layout rows = Layout().StoredAs(DType::kBFloat16);
  EXPECT_EQ(rows, Layout::Of("plain:bf16"));
  EXPECT_EQ(rows, Layout::Of("abcd:bf16"));
  EXPECT_FALSE(rows.IsPlain());
  EXPECT_EQ(rows.StoredAs(DType::kFloat32), Layout());
  EXPECT_EQ(PhysicalByteCount({{7}, DType::kFloat32}, rows), 14u);
  for (const char* tag : {":", "acdb:", "acdb:f16", "acdb:bf16:bf16", "bf16:acdb"}) EXPECT_FALSE(Layout::Parse(tag)) << tag;
}

TEST(LayoutTest, FitsTensorsOfItsRankAndType) {
  const TensorType image{{1, 3, 2, 2}, DType::kFloat32};
  EXPECT_TRUE(Layout().Fits({{3}, DType::kInt64}));
  EXPECT_TRUE(Layout::Of("acdb").Fits({{1, 3, 2, 2}, DType::kInt64}));
  EXPECT_FALSE(Layout::Of("acdb").Fits({{3, 2, 2}, DType::kFloat32}));
  EXPECT_TRUE(Layout::Of("plain:bf16").Fits({{3}, DType::kFloat32}));
  EXPECT_TRUE(Layout::Of("acdb:bf16").Fits(image));
  EXPECT_FALSE(Layout::Of("acdb:bf16").Fits({{1, 3, 2, 2}, DType::kInt64}));
}

}  // namespace
}  // namespace collage
