#include "collage/tensor/checked_bytes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace collage {
namespace {

/// In numbers that cannot overflow: 6 extents of 63 bits would need 378, so this stops at what is larger than any memory.
std::optional<size_t> Slowly(const TensorType& type, const Layout& layout) {
  double bytes = static_cast<double>(ByteSize(type.dtype));
  double at_least_one = bytes;
  for (size_t i = 0; i < type.shape.size(); ++i) {
    double block = 1;
    for (const Layout::Block& inner : layout.blocks()) block *= inner.dimension == i ? static_cast<double>(inner.extent) : 1;
    const double padded = std::ceil(static_cast<double>(type.shape[i]) / block) * block;
    bytes *= padded;
    at_least_one *= std::max(padded, block);
  }
  if (at_least_one > static_cast<double>(kAddressableBytes)) return std::nullopt;
  return static_cast<size_t>(bytes);
}

TEST(CheckedByteCountTest, IsPhysicalByteCountOrNothing) {
  std::mt19937_64 random(7);
  size_t none = 0;
  const std::vector<const char*> tags = {"plain", "acdb", "aBcd16b", "ABcd16a8b", "aBcd65536b65536b", "aBcd65536b65536b65536b65536b"};
  for (int round = 0; round < 20000; ++round) {
    const Layout layout = Layout::Of(tags[random() % tags.size()]);
    TensorType type{{}, random() % 2 ? DType::kFloat64 : DType::kUInt8};
    for (int i = 0; i < 4; ++i) type.shape.push_back(static_cast<int64_t>(random() >> (random() % 10 == 0 ? 1 : 40 + random() % 24)));
    const std::optional<size_t> bytes = CheckedByteCount(type, layout);
    EXPECT_EQ(bytes, Slowly(type, layout)) << ToString(type) << " " << layout.ToString();
    if (bytes) {
      EXPECT_EQ(*bytes, PhysicalByteCount(type, layout));
    } else {
      ++none;
    }
  }
  EXPECT_GT(none, 2000U);
  EXPECT_LT(none, 18000U);
}

TEST(CheckedByteCountTest, NegativeExtentsAndHiddenOverflowsAreNothing) {
  const Layout plain;
  EXPECT_FALSE(CheckedByteCount({{-1, 2}}, plain));
  EXPECT_FALSE(CheckedByteCount({{int64_t{1} << 62, 4, 0}}, plain));
  EXPECT_EQ(CheckedByteCount({{5, 0}}, plain), 0U);
  EXPECT_EQ(CheckedByteCount({{}}, plain), 4U);
  EXPECT_FALSE(CheckedByteCount({{INT64_MAX}, DType::kUInt8}, Layout::Of("A65536a")));
}

}  // namespace
}  // namespace collage
