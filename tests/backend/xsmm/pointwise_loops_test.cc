#include "collage/backend/xsmm/pointwise_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tests/backend/xsmm/dice.h"

namespace collage::xsmm {
namespace {

/// Small integers, whose sums are exact whatever their order.
void CheckOne(Dice& dice, int64_t lanes) {
  PixelProduct product{};
  product.pixels = dice.Roll(1, 40);
  product.depth = dice.Roll(1, 30);
  product.columns = lanes * dice.Roll(1, 9);
  product.data_pixel = product.depth + dice.Roll(0, 5);
  product.result_pixel = product.columns + dice.Roll(0, 5);
  const std::vector<float> data = dice.Numbers(product.pixels * product.data_pixel);
  const std::vector<float> weights = dice.Numbers(product.depth * product.columns);
  const std::vector<float> bias = dice.Numbers(product.columns);
  if (dice.Roll(0, 1) == 1) product.bias = bias.data();
  const bool is_bounded = dice.Roll(0, 1) == 1;
  product.low = is_bounded ? -40 : -std::numeric_limits<float>::infinity();
  product.high = is_bounded ? 50 : std::numeric_limits<float>::infinity();
  constexpr float kUntouched = 1e9F;
  std::vector<float> result(static_cast<size_t>(product.pixels * product.result_pixel), kUntouched);
  product.data = data.data();
  product.weights = weights.data();
  product.result = result.data();
  PixelProductLoopFor(lanes)(product);
  for (int64_t pixel = 0; pixel < product.pixels; ++pixel) {
    for (int64_t column = 0; column < product.result_pixel; ++column) {
      float wanted = kUntouched;
      if (column < product.columns) {
        wanted = product.bias ? bias[static_cast<size_t>(column)] : 0;
        for (int64_t d = 0; d < product.depth; ++d)
          wanted += data[static_cast<size_t>(pixel * product.data_pixel + d)] * weights[static_cast<size_t>(d * product.columns + column)];
        wanted = std::clamp(wanted, product.low, product.high);
      }
      ASSERT_EQ(result[static_cast<size_t>(pixel * product.result_pixel + column)], wanted) << "pixel " << pixel << ", column " << column;
    }
  }
}

TEST(PointwiseLoopsTest, AnyNumberOfPixelsAndVectors) { OnEachWidth(500, CheckOne); }

}  // namespace
}  // namespace collage::xsmm
