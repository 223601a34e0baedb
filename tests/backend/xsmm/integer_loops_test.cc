#include "collage/backend/xsmm/integer_loops.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/backend/xsmm/dice.h"

namespace collage::xsmm {
namespace {

/// Small integers, whose sums are exact whatever their order, and scales that are powers of two.
void CheckOne(Dice& dice, int64_t lanes) {
  IntegerProduct product{};
  product.rows = dice.Roll(1, 20);
  product.depth = dice.Roll(1, 40);
  product.columns = dice.Roll(1, 4 * lanes);
  product.data_row = product.depth + dice.Roll(0, 5);
  product.result_row = product.columns + dice.Roll(0, 5);
  const int64_t stored = (product.columns + lanes - 1) / lanes * lanes;
  const std::vector<float> data = dice.Numbers(product.rows * product.data_row);
  const int64_t fours = (product.depth + kIntegerDepths - 1) / kIntegerDepths;
  std::vector<int8_t> weights(static_cast<size_t>(fours * stored * kIntegerDepths));
  for (int8_t& weight : weights) weight = static_cast<int8_t>(dice.Roll(-128, 127));
  std::vector<float> scales(static_cast<size_t>(stored));
  for (float& scale : scales) scale = 1.0F / static_cast<float>(1 << dice.Roll(0, 6));
  constexpr float kUntouched = 1e9F;
  std::vector<float> result(static_cast<size_t>(product.rows * product.result_row), kUntouched);
  product.data = data.data();
  product.weights = weights.data();
  product.scales = scales.data();
  product.result = result.data();
  IntegerProductLoopFor(lanes)(product);
  for (int64_t row = 0; row < product.rows; ++row) {
    for (int64_t column = 0; column < product.result_row; ++column) {
      float wanted = kUntouched;
      if (column < product.columns) {
        wanted = 0;
        for (int64_t d = 0; d < product.depth; ++d) {
          const int64_t at = (d / kIntegerDepths * stored + column) * kIntegerDepths + d % kIntegerDepths;
          wanted += data[static_cast<size_t>(row * product.data_row + d)] * static_cast<float>(weights[static_cast<size_t>(at)]);
        }
        wanted *= scales[static_cast<size_t>(column)];
      }
      ASSERT_EQ(result[static_cast<size_t>(row * product.result_row + column)], wanted) << "row " << row << ", column " << column;
    }
  }
}

TEST(IntegerLoopsTest, AnyNumberOfRowsAndColumns) { OnEachWidth(500, CheckOne); }

}  // namespace
}  // namespace collage::xsmm
