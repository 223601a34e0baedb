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

}  // namespace
}  // namespace collage
