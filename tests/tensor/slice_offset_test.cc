#include "collage/tensor/slice_offset.h"

#include <gtest/gtest.h>

#include "tests/runtime/layout_oracle.h"

namespace collage {
namespace {

/// Where a slice begins if each of its elements lies as far behind that as in a tensor of its own, and all bytes of that tensor are its.
std::optional<size_t> ByDefinition(const TensorType& whole, const Layout& layout, size_t axis, int64_t begin, int64_t extent) {
  TensorType part = whole;
  part.shape[axis] = extent;
  std::optional<size_t> offset;
  bool lies_together = true;
  ForEachIndex(part.shape, [&](const std::vector<int64_t>& index) {
    std::vector<int64_t> in_whole = index;
    in_whole[axis] += begin;
    const size_t from = PhysicalOffset(whole, layout, in_whole) - PhysicalOffset(part, layout, index);
    lies_together = lies_together && offset.value_or(from) == from;
    offset = from;
  });
  if (!lies_together) return std::nullopt;
  // What pads the part must pad the whole, too.
  const size_t end = *offset + PhysicalByteCount(part, layout) / 4;
  ForEachIndex(whole.shape, [&](const std::vector<int64_t>& index) {
    const size_t at = PhysicalOffset(whole, layout, index);
    const bool is_of_part = index[axis] >= begin && index[axis] < begin + extent;
    if (at >= *offset && at < end && !is_of_part) lies_together = false;
  });
  if (!lies_together || end > PhysicalByteCount(whole, layout) / 4) return std::nullopt;
  return *offset * 4;
}

TEST(SliceOffsetTest, IsWhatTheDefinitionOfTheLayoutSays) {
  const std::vector<std::pair<Shape, std::vector<const char*>>> cases = {
      {{1, 6, 2, 3}, {"plain", "acdb", "aBcd2b", "aBcd4b", "ABcd2a2b", "cBda2b"}},
      {{2, 4, 3, 1}, {"plain", "acdb", "aBcd2b", "Abcd2a", "Abcd4a", "ABcd2a2b", "bacd"}},
      {{1, 1, 4, 5}, {"plain", "acdb", "aBcd4b", "abCd2c"}},
      {{3, 4}, {"plain", "ba", "aB2b", "AB4a2b", "BA2b4a"}},
      {{5}, {"plain"}},
  };
  size_t together = 0;
  for (const auto& [shape, layouts] : cases) {
    for (const char* tag : layouts) {
      const TensorType whole{shape, DType::kInt32};
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        for (int64_t begin = 0; begin < shape[axis]; ++begin) {
          for (int64_t extent = 1; begin + extent <= shape[axis]; ++extent) {
            const auto expected = ByDefinition(whole, Layout::Of(tag), axis, begin, extent);
            const auto found = SliceOffset(whole, Layout::Of(tag), axis, begin, extent);
            // It may decline what lies together by chance; what it says must be so.
            if (!found) continue;
            EXPECT_EQ(found, expected) << ToString(whole) << " " << tag << " axis " << axis << " from " << begin << ", " << extent;
            ++together;
          }
        }
      }
    }
  }
  EXPECT_GT(together, 100u);
}

TEST(SliceOffsetTest, OfWholeBlocksOfTheOutermostDimension) {
  const TensorType whole{{1, 40, 7, 7}, DType::kFloat32};
  const Layout blocked = Layout::Of("aBcd16b");
  EXPECT_EQ(SliceOffset(whole, blocked, 1, 16, 16), 16u * 49 * 4);
  EXPECT_EQ(SliceOffset(whole, blocked, 1, 32, 8), 32u * 49 * 4);
  EXPECT_EQ(SliceOffset(whole, blocked, 1, 16, 8), std::nullopt);
  EXPECT_EQ(SliceOffset(whole, blocked, 1, 8, 32), std::nullopt);
  EXPECT_EQ(SliceOffset(whole, Layout(), 1, 3, 5), 3u * 49 * 4);
  EXPECT_EQ(SliceOffset(whole, Layout(), 2, 1, 2), std::nullopt);
  EXPECT_EQ(SliceOffset(whole, Layout::Of("acdb"), 2, 1, 2), 7u * 40 * 4);
  EXPECT_EQ(SliceOffset({{2, 40, 7, 7}, DType::kFloat32}, blocked, 1, 16, 16), std::nullopt);
}

}  // namespace
}  // namespace collage
