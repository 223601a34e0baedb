#include "collage/backend/xsmm/softmax_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/backend/xsmm/dice.h"

namespace collage::xsmm {
namespace {

void CheckExponentials(Dice& dice, int64_t lanes) {
  const int64_t count = dice.Roll(1, 200);
  std::vector<float> row = dice.Numbers(count);
  for (float& score : row) score *= 0.7F;
  // As masks write it.
  if (dice.Flip() && count > 1) row[static_cast<size_t>(dice.Roll(1, count - 1))] = -std::numeric_limits<float>::infinity();
  const float largest = *std::max_element(row.begin(), row.end());
  double wanted_sum = 0;
  std::vector<double> wanted;
  for (const float score : row) wanted_sum += wanted.emplace_back(std::exp(static_cast<double>(score) - largest));
  row.resize(static_cast<size_t>((count + lanes - 1) / lanes * lanes), 1000.0F);
  const float sum = SoftmaxLoopsFor(lanes).exponentials(row.data(), count);
  ASSERT_NEAR(sum, wanted_sum, 1e-6 * wanted_sum);
  for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(row[i], wanted[i], 1e-6 * wanted[i] + 1e-34) << i;
}

void CheckChoice(Dice& dice, int64_t lanes) {
  const int64_t count = dice.Roll(1, 100);
  const std::vector<float> before = dice.Numbers(count);
  std::vector<uint8_t> choice;
  for (int64_t i = 0; i < count; ++i) choice.push_back(static_cast<uint8_t>(dice.Roll(0, 1)));
  const bool replaced = dice.Flip();
  std::vector<float> row = before;
  SoftmaxLoopsFor(lanes).select(row.data(), count, choice.data(), replaced, -100);
  for (size_t i = 0; i < row.size(); ++i) ASSERT_EQ(row[i], (choice[i] == 1) == replaced ? -100 : before[i]) << i;
}

TEST(SoftmaxLoopsTest, ExponentialsAndTheirSum) { OnEachWidth(1000, CheckExponentials); }

TEST(SoftmaxLoopsTest, ChoicesOfAnyLength) { OnEachWidth(500, CheckChoice); }

TEST(SoftmaxLoopsTest, WhatIsNoNumberStaysSo) {
  OnEachWidth(1, [](Dice&, int64_t lanes) {
    for (const size_t at : {size_t{0}, size_t{5}, size_t{40}}) {
      std::vector<float> row(64, 1.0F);
      row[at] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_TRUE(std::isnan(SoftmaxLoopsFor(lanes).exponentials(row.data(), 50)));
    }
    std::vector<float> masked(64, -std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isnan(SoftmaxLoopsFor(lanes).exponentials(masked.data(), 50)));
  });
}

}  // namespace
}  // namespace collage::xsmm
