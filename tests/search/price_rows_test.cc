#include "collage/search/price_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

namespace collage {
namespace {

/// Random prices, some of them none, in rows of any length that holds the backends.
class RandomRows {
 public:
  static constexpr size_t kRows = 7;
  static constexpr size_t kSets = 5;

  RandomRows(size_t backends, size_t stride, uint64_t seed) : backends_(backends), stride_(stride), random_(seed) {
    Fill(prices_, kRows, backends);
    Fill(all_rest_, kSets, backends + 1);
    Fill(reached_, kSets, backends + 1);
    Fill(transition_to_, backends, backends + 1);
    transition_from_.assign((backends + 1) * stride, kNever);
    for (size_t from = 0; from <= backends; ++from) {
      for (size_t to = 0; to < backends; ++to) transition_from_[from * stride + to] = transition_to_[to * stride + from];
    }
    for (size_t count = random_() % 5; count > 0; --count)
      steps_.push_back({static_cast<uint32_t>(random_() % kSets), static_cast<uint32_t>(random_() % kRows)});
  }

  [[nodiscard]] PriceRows Rows() const { return {stride_, backends_, prices_.data(), transition_to_.data(), transition_from_.data()}; }
  [[nodiscard]] Picoseconds Price(size_t row, size_t backend) const { return prices_[row * stride_ + backend]; }
  [[nodiscard]] Picoseconds Rest(size_t set, size_t backend) const { return all_rest_[set * stride_ + backend]; }
  [[nodiscard]] Picoseconds Transition(size_t from, size_t to) const { return transition_to_[to * stride_ + from]; }

  size_t backends_;
  size_t stride_;
  std::mt19937_64 random_;
  std::vector<PriceStep> steps_;
  std::vector<Picoseconds> prices_, all_rest_, reached_, transition_to_, transition_from_;

 private:
  void Fill(std::vector<Picoseconds>& rows, size_t count, size_t known) {
    rows.assign(count * stride_, kNever);
    for (size_t row = 0; row < count; ++row) {
      for (size_t i = 0; i < known; ++i) {
        // Promises make some of them negative.
        if (random_() % 4 != 0) rows[row * stride_ + i] = static_cast<Picoseconds>(random_() % 2000) - 500;
      }
    }
  }
};

/// A sum of which no part may be missing.
Picoseconds SumOf(std::initializer_list<Picoseconds> parts) {
  Picoseconds sum = 0;
  for (const Picoseconds part : parts) {
    if (part == kNever) return kNever;
    sum += part;
  }
  return sum;
}

Picoseconds Shown(Picoseconds sum) { return IsNever(sum) ? kNever : sum; }

struct Size {
  size_t backends, stride;
};
// Rows of 24 numbers have no vectors.
class PriceRowsTest : public testing::TestWithParam<std::tuple<Size, size_t>> {
 protected:
  size_t backends = std::get<0>(GetParam()).backends;
  size_t stride = std::get<0>(GetParam()).stride;
  PriceRowLoops loops = LoopsFor(stride, std::get<1>(GetParam()));
};
INSTANTIATE_TEST_SUITE_P(SizesAndLanes, PriceRowsTest,
                         testing::Combine(testing::Values(Size{1, 8}, Size{7, 8}, Size{8, 16}, Size{15, 16}, Size{20, 24}),
                                          testing::Values(1, 4, 8)),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param).backends) + "BackendsBy" + std::to_string(std::get<1>(test.param));
                         });

TEST_P(PriceRowsTest, TheRestIsTheLeastOverStepsAndWhoRunsThem) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const RandomRows random(backends, stride, seed);
    std::vector<Picoseconds> rest(stride, 1);
    loops.find_rest(random.Rows(), random.steps_, random.all_rest_.data(), rest.data());
    for (size_t last = 0; last <= backends; ++last) {
      Picoseconds least = kNever;
      for (const PriceStep& step : random.steps_) {
        for (size_t next = 0; next < backends; ++next)
          least = std::min(least, SumOf({random.Transition(last, next), random.Price(step.row, next), random.Rest(step.to, next)}));
      }
      EXPECT_EQ(rest[last], least) << "seed " << seed << ", after " << last;
    }
  }
}

TEST_P(PriceRowsTest, WhatIsPassedOnIsTheLeastOverWhoRanBefore) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const RandomRows random(backends, stride, seed);
    constexpr size_t kFrom = RandomRows::kSets - 1;
    std::vector<Picoseconds> all_reached = random.reached_;
    std::vector<Picoseconds> around(RandomRows::kRows * stride, kNever);
    const std::vector<Picoseconds> from(random.reached_.begin() + kFrom * static_cast<std::ptrdiff_t>(stride), random.reached_.end());
    loops.pass_on(random.Rows(), random.steps_, from.data(), random.all_rest_.data(), all_reached.data(), around.data());
    std::vector<Picoseconds> expected_reached = random.reached_;
    std::vector<Picoseconds> expected_around(around.size(), kNever);
    for (const PriceStep& step : random.steps_) {
      for (size_t next = 0; next < backends; ++next) {
        for (size_t last = 0; last <= backends; ++last) {
          const Picoseconds arrived = SumOf({from[last], random.Transition(last, next)});
          Picoseconds& reached = expected_reached[step.to * stride + next];
          Picoseconds& here = expected_around[step.row * stride + next];
          reached = std::min(reached, SumOf({arrived, random.Price(step.row, next)}));
          here = std::min(here, SumOf({arrived, random.Rest(step.to, next)}));
        }
      }
    }
    for (size_t i = 0; i < around.size(); ++i) EXPECT_EQ(Shown(around[i]), expected_around[i]) << "seed " << seed << ", around " << i;
    for (size_t i = 0; i < all_reached.size(); ++i) EXPECT_EQ(Shown(all_reached[i]), expected_reached[i]) << "seed " << seed << ", " << i;
  }
}

}  // namespace
}  // namespace collage
