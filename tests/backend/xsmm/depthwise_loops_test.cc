#include "collage/backend/xsmm/depthwise_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tests/backend/xsmm/dice.h"

namespace collage::xsmm {
namespace {

/// Small integers, whose sums are exact whatever their order.
void CheckOne(Dice& dice, DepthwiseLoop loop) {
  DepthwiseRow row{};
  row.row_count = dice.Roll(0, 4);
  row.width = dice.Roll(1, 40);
  row.taps = dice.Roll(1, 7);
  row.stride = dice.Roll(1, 3);
  row.dilation = dice.Roll(1, 3);
  row.pad_begin = dice.Roll(0, 9);
  row.channels = dice.Roll(1, 70);
  row.data_pixel = row.channels + dice.Roll(0, 5);
  row.weight_stride = row.channels + dice.Roll(0, 5);
  row.result_pixel = row.channels + dice.Roll(0, 5);
  row.first = dice.Roll(0, 9);
  row.count = dice.Roll(1, 40);
  std::vector<std::vector<float>> data;
  std::vector<const float*> rows;
  for (int64_t r = 0; r < row.row_count; ++r) data.push_back(dice.Numbers(row.width * row.data_pixel));
  for (const std::vector<float>& one : data) rows.push_back(one.data());
  const std::vector<float> weights = dice.Numbers(row.row_count * row.taps * row.weight_stride);
  const std::vector<float> bias = dice.Numbers(row.channels);
  if (dice.Roll(0, 1) == 1) row.bias = bias.data();
  const bool is_bounded = dice.Roll(0, 1) == 1;
  row.low = is_bounded ? -20 : -std::numeric_limits<float>::infinity();
  row.high = is_bounded ? 30 : std::numeric_limits<float>::infinity();
  constexpr float kUntouched = 1e9F;
  std::vector<float> result(static_cast<size_t>(row.count * row.result_pixel), kUntouched);
  row.rows = rows.data();
  row.weights = weights.data();
  row.result = result.data();
  loop(row);
  for (int64_t x = 0; x < row.count; ++x) {
    for (int64_t channel = 0; channel < row.result_pixel; ++channel) {
      float wanted = channel < row.channels ? 0 : kUntouched;
      for (int64_t r = 0; channel < row.channels && r < row.row_count; ++r) {
        for (int64_t tap = 0; tap < row.taps; ++tap) {
          const int64_t from = (row.first + x) * row.stride - row.pad_begin + tap * row.dilation;
          if (from < 0 || from >= row.width) continue;
          wanted += data[static_cast<size_t>(r)][static_cast<size_t>(from * row.data_pixel + channel)] *
                    weights[static_cast<size_t>((r * row.taps + tap) * row.weight_stride + channel)];
        }
      }
      if (channel < row.channels) wanted = std::clamp(wanted + (row.bias ? bias[static_cast<size_t>(channel)] : 0), row.low, row.high);
      ASSERT_EQ(result[static_cast<size_t>(x * row.result_pixel + channel)], wanted) << "pixel " << x << ", channel " << channel;
    }
  }
}

TEST(DepthwiseLoopsTest, AnyWindowAndAnyNumberOfChannels) {
  OnEachWidth(2000, [](Dice& dice, int64_t lanes) { CheckOne(dice, DepthwiseLoopFor(lanes)); });
}

}  // namespace
}  // namespace collage::xsmm
