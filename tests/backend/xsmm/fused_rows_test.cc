#include "collage/backend/xsmm/fused_rows.h"

#include <gmock/gmock.h>

#include "tests/backend/xsmm/dice.h"
#include "tests/support/rounds.h"

namespace collage::xsmm {
namespace {

using testing::ElementsAre;

TEST(FusedRowsTest, RowsOfPaddingAreNotRead) {
  const RowWindow window{3, 1, 1, 1, 8};
  EXPECT_EQ(RowsRead(window, {0, 1}), (RowSpan{0, 2}));
  EXPECT_EQ(RowsRead(window, {3, 5}), (RowSpan{2, 6}));
  EXPECT_EQ(RowsRead(window, {7, 8}), (RowSpan{6, 8}));
  EXPECT_EQ(RowsRead({3, 2, 2, 0, 11}, {1, 3}), (RowSpan{2, 9})) << "from 1 * 2 to 2 * 2 + 2 * 2";
  EXPECT_EQ(RowsRead({1, 1, 1, 4, 3}, {0, 2}).Count(), 0) << "nothing but padding";
}

// A pointwise convolution, a window of 3 rows with padding, and a pointwise one; rows 4 to 8 of 8.
TEST(FusedRowsTest, ABandBeginsWithTheRowsThatItsNeighbourComputesAsWell) {
  const std::vector<RowWindow> windows = {{1, 1, 1, 0, 8}, {3, 1, 1, 1, 8}, {1, 1, 1, 0, 8}};
  const std::vector<RowStep> steps = CutIntoSteps(windows, {4, 8}, 2);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_THAT(steps[0], ElementsAre(RowSpan{3, 7}, RowSpan{4, 6}, RowSpan{4, 6}));
  EXPECT_THAT(steps[1], ElementsAre(RowSpan{7, 8}, RowSpan{6, 8}, RowSpan{6, 8}));
  EXPECT_THAT(RowsKept(windows, steps), ElementsAre(4, 2));
}

/// Windows of a chain in which each reads the rows of the one before; the last gives `rows` rows.
std::vector<RowWindow> RandomWindows(Dice& dice, int64_t& rows) {
  std::vector<RowWindow> windows(static_cast<size_t>(dice.Roll(2, 4)));
  int64_t extent = dice.Roll(1, 40);
  for (RowWindow& window : windows) {
    window = {dice.Roll(1, 5), dice.Roll(1, 3), dice.Roll(1, 2), dice.Roll(0, 4), extent};
    const int64_t room = extent + window.pad_begin + dice.Roll(0, 4) - ((window.kernel - 1) * window.dilation + 1);
    if (room < 0) window = {1, 1, 1, 0, extent};
    extent = room < 0 ? extent : room / window.stride + 1;
  }
  rows = extent;
  return windows;
}

// Every tap of every row is looked for where the row must lie, in a buffer of as many rows as are kept; so are the rows of results, which
// must come once each and in order.
TEST(FusedRowsTest, EveryRowIsThereWhenItIsReadAndIsComputedOnce) {
  for (unsigned seed = 0; seed < Rounds(2000); ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    int64_t rows = 0;
    const std::vector<RowWindow> windows = RandomWindows(dice, rows);
    const int64_t first = dice.Roll(0, rows - 1);
    const RowSpan band{first, dice.Roll(first + 1, rows)};
    const std::vector<RowStep> steps = CutIntoSteps(windows, band, dice.Roll(1, 9));
    const std::vector<int64_t> kept = RowsKept(windows, steps);
    std::vector<std::vector<int64_t>> held(windows.size());
    for (size_t i = 0; i < kept.size(); ++i) held[i].assign(static_cast<size_t>(kept[i]), -1);
    std::vector<int64_t> computed(windows.size(), -1);  // the last row
    int64_t next = band.first;
    for (const RowStep& step : steps) {
      ASSERT_EQ(step.size(), windows.size());
      for (size_t i = 0; i < windows.size(); ++i) {
        const RowWindow& window = windows[i];
        for (int64_t row = step[i].first; row < step[i].last; ++row) {
          ASSERT_GT(row, computed[i]) << "computed twice";
          computed[i] = row;
          for (int64_t tap = 0; i > 0 && tap < window.kernel; ++tap) {
            const int64_t read = row * window.stride - window.pad_begin + tap * window.dilation;
            if (read < 0 || read >= window.data_rows) continue;
            ASSERT_EQ(held[i - 1][static_cast<size_t>(read % kept[i - 1])], read) << "layer " << i << ", row " << row << ", tap " << tap;
          }
          if (i < kept.size()) held[i][static_cast<size_t>(row % kept[i])] = row;
        }
      }
      ASSERT_EQ(step.back().first, next);
      next = step.back().last;
    }
    ASSERT_EQ(next, band.last);
  }
}

}  // namespace
}  // namespace collage::xsmm
