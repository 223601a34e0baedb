#include "collage/backend/xsmm/gate_loops.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/backend/xsmm/dice.h"

namespace collage::xsmm {
namespace {

/// Small integers, whose sums are exact whatever their order. Vectors of a row lie apart, in any order.
void CheckOne(Dice& dice, int64_t lanes) {
  GateProduct product{};
  product.rows = dice.Roll(1, 20);
  product.depth = dice.Roll(1, 40);
  product.vectors = dice.Roll(1, kGateVectors);
  product.state_row = product.depth + dice.Roll(0, 5);
  const int64_t turn = dice.Roll(0, kGateVectors - 1);
  for (int64_t v = 0; v < product.vectors; ++v) product.places[v] = (v + turn) % kGateVectors * (lanes + 3);
  product.sums_row = kGateVectors * (lanes + 3) + dice.Roll(0, 5);
  const std::vector<float> state = dice.Numbers(product.rows * product.state_row);
  const std::vector<float> weights = dice.Numbers(product.depth * product.vectors * lanes);
  const std::vector<float> before = dice.Numbers(product.rows * product.sums_row);
  std::vector<float> sums = before;
  product.state = state.data();
  product.weights = weights.data();
  product.sums = sums.data();
  GateProductLoopFor(lanes)(product);
  std::vector<float> wanted = before;
  for (int64_t row = 0; row < product.rows; ++row) {
    for (int64_t v = 0; v < product.vectors; ++v) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        for (int64_t d = 0; d < product.depth; ++d) {
          wanted[static_cast<size_t>(row * product.sums_row + product.places[v] + lane)] +=
              state[static_cast<size_t>(row * product.state_row + d)] *
              weights[static_cast<size_t>((d * product.vectors + v) * lanes + lane)];
        }
      }
    }
  }
  ASSERT_EQ(sums, wanted);
}

TEST(GateLoopsTest, AnyNumberOfRowsAndVectors) { OnEachWidth(500, CheckOne); }

}  // namespace
}  // namespace collage::xsmm
