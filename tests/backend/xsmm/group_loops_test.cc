#include "collage/backend/xsmm/group_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tests/backend/xsmm/dice.h"

namespace collage::xsmm {
namespace {

/// Each lane of what is spread is the channel of its group that it is to be, at every pixel.
void CheckSpread(Dice& dice, int64_t lanes) {
  const int64_t groups = dice.Roll(1, 20);
  const int64_t width = dice.Roll(1, 30);
  const int64_t results = dice.Roll(1, 30);
  const int64_t inputs = groups * width;
  const int64_t outputs = groups * results;
  if (outputs < lanes) return;
  const int64_t first = dice.Roll(0, outputs - lanes);
  const std::vector<SpreadChannel> channels = SpreadChannels(inputs, outputs, groups, first, lanes);
  const int64_t last_group = (first + lanes - 1) / results;
  if (channels.empty()) {
    // Never where one vector would do.
    EXPECT_TRUE(inputs < lanes || (last_group - first / results) * width + 1 > lanes);
    return;
  }
  ASSERT_EQ(static_cast<int64_t>(channels.size()), width);
  bool reads_two = false;
  for (const SpreadChannel& channel : channels) {
    ASSERT_GE(channel.first, 0);
    ASSERT_LE(std::max(channel.first, channel.second) + lanes, inputs);
    for (int64_t lane = 0; lane < lanes; ++lane) reads_two |= channel.lane_from[static_cast<size_t>(lane)] >= lanes;
  }
  const int64_t pixels = dice.Roll(1, 9);
  const std::vector<float> data = dice.Numbers(pixels * inputs);
  std::vector<float> spread(static_cast<size_t>(pixels * width * lanes));
  const SpreadRow row{data.data(), inputs, pixels, channels.data(), width, spread.data()};
  const GroupLoops loops = GroupLoopsFor(lanes);
  (reads_two || dice.Flip() ? loops.spread_two : loops.spread_one)(row);
  for (int64_t x = 0; x < pixels; ++x) {
    for (int64_t j = 0; j < width; ++j) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const float wanted = data[static_cast<size_t>(x * inputs + (first + lane) / results * width + j)];
        ASSERT_EQ(spread[static_cast<size_t>((x * width + j) * lanes + lane)], wanted) << "pixel " << x << ", channel " << j;
      }
    }
  }
}

/// Small integers, whose sums are exact whatever their order.
void CheckSums(Dice& dice, int64_t lanes) {
  GroupedRow row{};
  row.row_count = dice.Roll(0, 4);
  row.taps = dice.Roll(1, 5);
  row.depth = dice.Roll(1, 5);
  row.stride = dice.Roll(1, 3);
  row.dilation = dice.Roll(1, 3);
  row.count = dice.Roll(1, 60);
  row.result_pixel = lanes + dice.Roll(0, 20);
  const int64_t width = (row.count - 1) * row.stride + (row.taps - 1) * row.dilation + 1;
  std::vector<std::vector<float>> spread, weights;
  std::vector<GroupedRow::WindowRow> rows;
  for (int64_t r = 0; r < row.row_count; ++r) {
    spread.push_back(dice.Numbers(width * row.depth * lanes));
    weights.push_back(dice.Numbers(row.taps * row.depth * lanes));
  }
  for (size_t r = 0; r < spread.size(); ++r) rows.push_back({spread[r].data(), weights[r].data()});
  row.rows = rows.data();
  const std::vector<float> bias = dice.Numbers(lanes);
  if (dice.Flip()) row.bias = bias.data();
  const bool is_bounded = dice.Flip();
  row.low = is_bounded ? -20 : -std::numeric_limits<float>::infinity();
  row.high = is_bounded ? 30 : std::numeric_limits<float>::infinity();
  constexpr float kUntouched = 1e9F;
  std::vector<float> result(static_cast<size_t>(row.count * row.result_pixel), kUntouched);
  row.result = result.data();
  GroupLoopsFor(lanes).convolve(row);
  for (int64_t x = 0; x < row.count; ++x) {
    for (int64_t lane = 0; lane < row.result_pixel; ++lane) {
      const float seen = result[static_cast<size_t>(x * row.result_pixel + lane)];
      if (lane >= lanes) {
        ASSERT_EQ(seen, kUntouched);
        continue;
      }
      float wanted = row.bias ? row.bias[lane] : 0;
      for (size_t r = 0; r < spread.size(); ++r) {
        for (int64_t tap = 0; tap < row.taps; ++tap) {
          for (int64_t j = 0; j < row.depth; ++j) {
            const int64_t from = (x * row.stride + tap * row.dilation) * row.depth + j;
            wanted +=
                spread[r][static_cast<size_t>(from * lanes + lane)] * weights[r][static_cast<size_t>((tap * row.depth + j) * lanes + lane)];
          }
        }
      }
      ASSERT_EQ(seen, std::clamp(wanted, row.low, row.high)) << "pixel " << x << ", lane " << lane;
    }
  }
}

TEST(GroupLoopsTest, ChannelsAreSpreadOverLanes) { OnEachWidth(3000, CheckSpread); }

TEST(GroupLoopsTest, AnyWindowAndAnyNumberOfPixels) { OnEachWidth(1000, CheckSums); }

}  // namespace
}  // namespace collage::xsmm
