#include "collage/runtime/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace collage {
namespace {

/// Most bytes alive at one step: no plan can do with less.
size_t LowerBound(const std::vector<LiveInterval>& intervals, size_t steps) {
  size_t most = 0;
  for (size_t step = 0; step < steps; ++step) {
    size_t bytes = 0;
    for (const LiveInterval& interval : intervals) {
      if (interval.begin <= step && step <= interval.end) bytes += (interval.bytes + 63) / 64 * 64;
    }
    most = std::max(most, bytes);
  }
  return most;
}

TEST(MemoryPlanTest, BuffersThatLiveTogetherNeverOverlap) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const size_t steps = 1 + random() % 40;
    std::vector<LiveInterval> intervals;
    for (size_t i = random() % 60; i > 0; --i) {
      const size_t begin = random() % steps;
      intervals.push_back({random() % 5000, begin, std::min(steps - 1, begin + random() % (1 + random() % steps))});
    }
    const MemoryPlan plan = PlanMemory(intervals);
    ASSERT_EQ(plan.offsets.size(), intervals.size());
    for (size_t i = 0; i < intervals.size(); ++i) {
      EXPECT_EQ(plan.offsets[i] % 64, 0u);
      EXPECT_LE(plan.offsets[i] + intervals[i].bytes, plan.bytes);
      for (size_t k = 0; k < i; ++k) {
        const bool together = intervals[i].begin <= intervals[k].end && intervals[k].begin <= intervals[i].end;
        const bool overlap =
            plan.offsets[i] < plan.offsets[k] + intervals[k].bytes && plan.offsets[k] < plan.offsets[i] + intervals[i].bytes;
        EXPECT_FALSE(together && overlap) << "seed " << seed << ": " << i << " and " << k;
      }
    }
    EXPECT_GE(plan.bytes, LowerBound(intervals, steps));
    EXPECT_LE(plan.bytes, 2 * LowerBound(intervals, steps)) << "seed " << seed;
  }
}

TEST(MemoryPlanTest, AChainNeedsTwoBuffers) {
  std::vector<LiveInterval> intervals;
  for (size_t i = 0; i < 100000; ++i) intervals.push_back({1000, i, i + 1});
  EXPECT_EQ(PlanMemory(intervals).bytes, 2048u);
}

TEST(MemoryPlanTest, OneLongLifeBesideAChain) {
  std::vector<LiveInterval> intervals{{640, 0, 100}};
  for (size_t i = 0; i < 100; ++i) intervals.push_back({6400, i, i});
  EXPECT_EQ(PlanMemory(intervals).bytes, 7040u);
}

}  // namespace
}  // namespace collage
