#include "collage/provider/regions.h"

#include <gmock/gmock.h>

#include <random>
#include <set>

namespace collage::provider {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Producers = std::vector<std::vector<size_t>>;

TEST(RegionsTest, AGraphThatIsTakenIsOneRegion) {
  EXPECT_THAT(Regions({true, true, true}, Producers{{}, {0}, {}}), ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(RegionsTest, WhatNobodyTakesIsNone) { EXPECT_THAT(Regions({false, false}, Producers{{}, {0}}), IsEmpty()); }

TEST(RegionsTest, ANodeBesideAnotherSplitsNothing) {
  // 1 is not taken and leads nowhere.
  EXPECT_THAT(Regions({true, false, true}, Producers{{}, {0}, {0}}), ElementsAre(ElementsAre(0, 2)));
}

TEST(RegionsTest, ANodeInBetweenSplits) {
  // 3 takes of 0 directly as well as through 1: it may not be with 0.
  EXPECT_THAT(Regions({true, false, true, true}, Producers{{}, {0}, {0}, {1, 2}}), ElementsAre(ElementsAre(0, 2), ElementsAre(3)));
}

TEST(RegionsTest, ANodeAtTheStartLeavesNoEmptyRegion) {
  EXPECT_THAT(Regions({false, true}, Producers{{}, {0}}), ElementsAre(ElementsAre(1)));
}

/// Nodes of random graphs: every taken one is in one region, and what leaves a region never comes back.
TEST(RegionsTest, NoPathLeavesARegionAndComesBack) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const size_t count = 2 + random() % 12;
    std::vector<bool> taken;
    Producers producers(count);
    for (size_t node = 0; node < count; ++node) {
      taken.push_back(random() % 3 > 0);
      for (size_t before = 0; before < node; ++before) {
        if (random() % 3 == 0) producers[node].push_back(before);
      }
    }
    std::multiset<size_t> seen;
    for (const std::vector<size_t>& region : Regions(taken, producers)) {
      const std::set<size_t> inside(region.begin(), region.end());
      seen.insert(region.begin(), region.end());
      std::vector<bool> left(count, false);  // reached from the region over a node outside of it
      for (size_t node = 0; node < count; ++node) {
        const bool is_inside = inside.contains(node);
        for (const size_t before : producers[node]) {
          if (left[before]) {
            EXPECT_FALSE(is_inside) << "round " << round << ", node " << node;
            left[node] = true;
          }
          if (inside.contains(before) && !is_inside) left[node] = true;
        }
      }
    }
    for (size_t node = 0; node < count; ++node) EXPECT_EQ(seen.count(node), taken[node] ? 1 : 0);
  }
}

}  // namespace
}  // namespace collage::provider
