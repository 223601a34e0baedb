#include "collage/backend/xsmm/streamed_loops.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/backend/xsmm/dice.h"

namespace collage::xsmm {
namespace {

/// Small integers, whose sums are exact whatever their order.
void CheckOne(Dice& dice, int64_t lanes) {
  StreamedProduct product{};
  product.rows = dice.Roll(1, 2 * kStreamedRows);
  product.depth = dice.Roll(1, 40);
  product.columns = dice.Roll(1, 4 * lanes);
  product.data_row = product.depth + dice.Roll(0, 5);
  product.result_row = product.columns + dice.Roll(0, 5);
  const int64_t stored = (product.columns + lanes - 1) / lanes * lanes;
  const std::vector<float> data = dice.Numbers(product.rows * product.data_row);
  const std::vector<float> weights = dice.Numbers(product.depth * stored);
  constexpr float kUntouched = 1e9F;
  std::vector<float> result(static_cast<size_t>(product.rows * product.result_row), kUntouched);
  product.data = data.data();
  product.weights = weights.data();
  product.result = result.data();
  StreamedLoopFor(lanes)(product);
  for (int64_t row = 0; row < product.rows; ++row) {
    for (int64_t column = 0; column < product.result_row; ++column) {
      float wanted = column < product.columns ? 0 : kUntouched;
      for (int64_t d = 0; column < product.columns && d < product.depth; ++d)
        wanted += data[static_cast<size_t>(row * product.data_row + d)] * weights[static_cast<size_t>(d * stored + column)];
      ASSERT_EQ(result[static_cast<size_t>(row * product.result_row + column)], wanted) << "row " << row << ", column " << column;
    }
  }
}

TEST(StreamedLoopsTest, AnyNumberOfRowsAndColumns) { OnEachWidth(500, CheckOne); }

}  // namespace
}  // namespace collage::xsmm
