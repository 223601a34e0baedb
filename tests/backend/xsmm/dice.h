#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace collage::xsmm {

/// Random numbers from a seed.
class Dice {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}
  int64_t Roll(int64_t low, int64_t high) { return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1)); }
  bool Flip() { return Roll(0, 1) == 1; }
  /// Whole, so that their sums are exact whatever their order.
  std::vector<float> Numbers(int64_t count) {
    std::vector<float> numbers(static_cast<size_t>(count));
    for (float& number : numbers) number = static_cast<float>(Roll(-8, 8));
    return numbers;
  }

 private:
  std::mt19937_64 engine_;
};

/// check(dice, lanes) from so many seeds for each width of vectors that this processor has, until one fails.
template <class Check>
void OnEachWidth(unsigned seeds, const Check& check) {
  for (const int64_t lanes : {8, 16}) {
    if (lanes == 16 ? !__builtin_cpu_supports("avx512bw") : !__builtin_cpu_supports("avx2")) continue;
    for (unsigned seed = 0; seed < seeds; ++seed) {
      SCOPED_TRACE(std::to_string(lanes) + " lanes, seed " + std::to_string(seed));
      Dice dice(seed);
      check(dice, lanes);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace collage::xsmm
