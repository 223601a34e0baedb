#include "collage/backend/xsmm/panel_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "tests/backend/xsmm/dice.h"

namespace collage::xsmm {
namespace {

/// Small integers, whose sums are exact whatever their order, and scales that are powers of two.
void CheckOne(Dice& dice, int64_t lanes) {
  const int64_t bits = std::array<int64_t, 3>{4, 8, 32}[static_cast<size_t>(dice.Roll(0, 2))];
  const int64_t in_word = 32 / bits;
  PanelTile tile{};
  PackedPanel& panel = tile.panel;
  tile.rows = dice.Roll(1, 20);
  panel.depth = dice.Roll(1, 80);
  panel.block = in_word * dice.Roll(1, 20);
  panel.columns = dice.Roll(1, kPanelVectors * lanes);
  tile.data_row = panel.depth + dice.Roll(0, 5);
  tile.result_row = panel.columns + dice.Roll(0, 5);
  const int64_t blocks = (panel.depth + panel.block - 1) / panel.block;
  const int64_t stored = (panel.columns + lanes - 1) / lanes * lanes;
  panel.has_offsets = dice.Flip();
  tile.sums_row = blocks;
  const std::vector<float> data = dice.Numbers(tile.rows * tile.data_row);
  std::vector<float> sums(static_cast<size_t>(tile.rows * blocks));
  for (int64_t row = 0; row < tile.rows; ++row)
    SumBlocks(data.data() + row * tile.data_row, panel.depth, panel.block, sums.data() + row * blocks);
  std::vector<uint32_t> weights;
  std::vector<float> wanted(static_cast<size_t>(tile.rows * panel.columns));
  std::vector<float> numbers;  // [depth][stored]
  for (int64_t block = 0; block < blocks; ++block) {
    std::vector<float> scales(static_cast<size_t>(stored));
    std::vector<float> offsets(static_cast<size_t>(stored));
    for (float& scale : scales) scale = bits == 32 ? 1 : 1.0F / static_cast<float>(1 << dice.Roll(0, 4));
    for (float& offset : offsets) offset = panel.has_offsets ? static_cast<float>(dice.Roll(-8, 8)) : 0;
    for (const float scale : scales) {
      if (bits < 32) weights.push_back(std::bit_cast<uint32_t>(scale));
    }
    for (const float offset : offsets) {
      if (panel.has_offsets) weights.push_back(std::bit_cast<uint32_t>(offset));
    }
    std::vector<uint32_t> words(static_cast<size_t>(panel.block / in_word * stored));
    for (int64_t d = 0; d < panel.block; ++d) {
      for (int64_t c = 0; c < stored; ++c) {
        const int64_t most = int64_t{1} << (std::min<int64_t>(bits, 8) - 1);
        const int64_t value = dice.Roll(-most, most - 1);
        const uint32_t low =
            bits == 32 ? std::bit_cast<uint32_t>(static_cast<float>(value)) : static_cast<uint32_t>(value) & ((uint32_t{1} << bits) - 1);
        words[static_cast<size_t>(d / in_word * stored + c)] |= low << (d % in_word * bits);
        const int64_t depth = block * panel.block + d;
        if (depth >= panel.depth) continue;
        const auto at = static_cast<size_t>(c);
        numbers.push_back(static_cast<float>(value) * scales[at] + offsets[at]);
        for (int64_t row = 0; c < panel.columns && row < tile.rows; ++row)
          wanted[static_cast<size_t>(row * panel.columns + c)] += data[static_cast<size_t>(row * tile.data_row + depth)] * numbers.back();
      }
    }
    weights.insert(weights.end(), words.begin(), words.end());
  }
  constexpr float kUntouched = 1e9F;
  std::vector<float> result(static_cast<size_t>(tile.rows * tile.result_row), kUntouched);
  tile.data = data.data();
  panel.weights = weights.data();
  tile.sums = sums.data();
  tile.result = result.data();
  PanelLoopFor(lanes, bits)(tile);
  if (bits < 32) {
    std::vector<float> widened(numbers.size() + 1, kUntouched);
    PanelWidenerFor(lanes, bits)(panel, widened.data());
    numbers.push_back(kUntouched);
    ASSERT_EQ(widened, numbers);
  }
  for (int64_t row = 0; row < tile.rows; ++row) {
    for (int64_t column = 0; column < tile.result_row; ++column) {
      const float expected = column < panel.columns ? wanted[static_cast<size_t>(row * panel.columns + column)] : kUntouched;
      ASSERT_EQ(result[static_cast<size_t>(row * tile.result_row + column)], expected) << "row " << row << ", column " << column;
    }
  }
}

TEST(PanelLoopsTest, AnyNumberOfRowsColumnsAndBlocks) { OnEachWidth(500, CheckOne); }

}  // namespace
}  // namespace collage::xsmm
