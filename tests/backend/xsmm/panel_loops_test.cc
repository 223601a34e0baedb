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
  tile.rows = dice.Roll(1, 20);
  tile.depth = dice.Roll(1, 80);
  tile.block = in_word * dice.Roll(1, 20);
  tile.columns = dice.Roll(1, kPanelVectors * lanes);
  tile.data_row = tile.depth + dice.Roll(0, 5);
  tile.result_row = tile.columns + dice.Roll(0, 5);
  const int64_t blocks = (tile.depth + tile.block - 1) / tile.block;
  const int64_t stored = (tile.columns + lanes - 1) / lanes * lanes;
  const bool has_sums = dice.Flip();
  tile.sums_row = blocks;
  const std::vector<float> data = dice.Numbers(tile.rows * tile.data_row);
  std::vector<float> sums(static_cast<size_t>(tile.rows * blocks));
  for (int64_t row = 0; row < tile.rows; ++row)
    SumBlocks(data.data() + row * tile.data_row, tile.depth, tile.block, sums.data() + row * blocks);
  std::vector<uint32_t> weights;
  std::vector<float> wanted(static_cast<size_t>(tile.rows * tile.columns));
  for (int64_t block = 0; block < blocks; ++block) {
    std::vector<float> scales(static_cast<size_t>(stored));
    std::vector<float> offsets(static_cast<size_t>(stored));
    for (float& scale : scales) scale = bits == 32 ? 1 : 1.0F / static_cast<float>(1 << dice.Roll(0, 4));
    for (float& offset : offsets) offset = has_sums ? static_cast<float>(dice.Roll(-8, 8)) : 0;
    for (const float scale : scales) {
      if (bits < 32) weights.push_back(std::bit_cast<uint32_t>(scale));
    }
    for (const float offset : offsets) {
      if (has_sums) weights.push_back(std::bit_cast<uint32_t>(offset));
    }
    std::vector<uint32_t> words(static_cast<size_t>(tile.block / in_word * stored));
    for (int64_t d = 0; d < tile.block; ++d) {
      for (int64_t c = 0; c < stored; ++c) {
        const int64_t most = int64_t{1} << (std::min<int64_t>(bits, 8) - 1);
        const int64_t value = dice.Roll(-most, most - 1);
        const uint32_t low =
            bits == 32 ? std::bit_cast<uint32_t>(static_cast<float>(value)) : static_cast<uint32_t>(value) & ((uint32_t{1} << bits) - 1);
        words[static_cast<size_t>(d / in_word * stored + c)] |= low << (d % in_word * bits);
        const int64_t depth = block * tile.block + d;
        for (int64_t row = 0; depth < tile.depth && c < tile.columns && row < tile.rows; ++row) {
          const float number = data[static_cast<size_t>(row * tile.data_row + depth)];
          const auto at = static_cast<size_t>(c);
          wanted[static_cast<size_t>(row * tile.columns + c)] += number * (static_cast<float>(value) * scales[at] + offsets[at]);
        }
      }
    }
    weights.insert(weights.end(), words.begin(), words.end());
  }
  constexpr float kUntouched = 1e9F;
  std::vector<float> result(static_cast<size_t>(tile.rows * tile.result_row), kUntouched);
  tile.data = data.data();
  tile.weights = weights.data();
  tile.sums = has_sums ? sums.data() : nullptr;
  tile.result = result.data();
  PanelLoopFor(lanes, bits)(tile);
  for (int64_t row = 0; row < tile.rows; ++row) {
    for (int64_t column = 0; column < tile.result_row; ++column) {
      const float expected = column < tile.columns ? wanted[static_cast<size_t>(row * tile.columns + column)] : kUntouched;
      ASSERT_EQ(result[static_cast<size_t>(row * tile.result_row + column)], expected) << "row " << row << ", column " << column;
    }
  }
}

TEST(PanelLoopsTest, AnyNumberOfRowsColumnsAndBlocks) { OnEachWidth(500, CheckOne); }

}  // namespace
}  // namespace collage::xsmm
