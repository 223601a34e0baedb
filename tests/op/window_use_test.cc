#include <gtest/gtest.h>

#include <random>
#include <set>

#include "collage/op/window.h"

namespace collage {
namespace {

struct Along {
  int64_t taps, dilation, positions, stride, pad_begin, extent;
};

WindowUse ByDefinition(const Along& a) {
  std::set<int64_t> elements;
  std::set<int64_t> taps;
  std::set<int64_t> positions;
  double pairs = 0;
  for (int64_t tap = 0; tap < a.taps; ++tap) {
    for (int64_t position = 0; position < a.positions; ++position) {
      const int64_t element = position * a.stride + tap * a.dilation - a.pad_begin;
      if (element < 0 || element >= a.extent) continue;
      elements.insert(element);
      taps.insert(tap);
      positions.insert(position);
      ++pairs;
    }
  }
  return {pairs, static_cast<double>(elements.size()), static_cast<double>(taps.size()), static_cast<double>(positions.size())};
}

TEST(WindowUseTest, EqualsTheDefinitionOnRandomWindows) {
  std::mt19937 random(2025);
  const auto draw = [&](int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random); };
  for (int turn = 0; turn < 20000; ++turn) {
    const Along a{draw(1, 7), draw(1, 4), draw(0, 9), draw(1, 5), draw(0, 8), draw(0, 20)};
    const WindowUse expected = ByDefinition(a);
    const WindowUse use = UseAlong(a.taps, a.dilation, a.positions, a.stride, a.pad_begin, a.extent);
    ASSERT_EQ(use.pairs, expected.pairs) << turn;
    ASSERT_EQ(use.elements, expected.elements) << turn;
    ASSERT_EQ(use.taps, expected.taps) << turn;
    ASSERT_EQ(use.positions, expected.positions) << turn;
  }
}

TEST(WindowUseTest, ExtentsOfAnySizeTakeNoTime) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  const WindowUse use = UseAlong(3, 1, kHuge, 1, 1, kHuge);
  EXPECT_EQ(use.pairs, 3.0 * kHuge - 2);
  EXPECT_EQ(use.elements, static_cast<double>(kHuge));
  EXPECT_EQ(use.positions, static_cast<double>(kHuge));
  const WindowUse whole = UseAlong(kHuge, 1, 1, 1, 0, kHuge);
  EXPECT_EQ(whole.taps, static_cast<double>(kHuge));
}

}  // namespace
}  // namespace collage
