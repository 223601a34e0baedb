#include "collage/support/index_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace collage {
namespace {

TEST(IndexSetTest, AgreesWithStdSetOnRandomOperations) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    std::set<size_t> a_model;
    std::set<size_t> b_model;
    IndexSet a;
    IndexSet b;
    for (int i = 0; i < 40; ++i) {
      const size_t x = random() % 400;
      const size_t y = 150 + random() % 400;
      a_model.insert(x);
      a.Add(x);
      b_model.insert(y);
      b.Add(y);
      const size_t gone = random() % 400;
      a_model.erase(gone);
      a.Remove(gone);
    }
    std::set<size_t> both = a_model;
    both.insert(b_model.begin(), b_model.end());
    EXPECT_EQ((a | b).ToVector(), std::vector<size_t>(both.begin(), both.end()));
    std::vector<size_t> common;
    std::vector<size_t> only_a;
    for (size_t x : a_model) (b_model.contains(x) ? common : only_a).push_back(x);
    EXPECT_EQ((a & b).ToVector(), common);
    EXPECT_EQ((a - b).ToVector(), only_a);
    EXPECT_EQ(a.Intersects(b), !common.empty());
    EXPECT_TRUE((a & b).IsSubsetOf(a));
    EXPECT_EQ(a.IsSubsetOf(b), only_a.empty());
    EXPECT_EQ(a.Count(), a_model.size());
    EXPECT_EQ(a.First(), *a_model.begin());
    EXPECT_EQ(a.Last(), *a_model.rbegin());
    EXPECT_EQ(a < b, std::lexicographical_compare(a_model.begin(), a_model.end(), b_model.begin(), b_model.end()));
    EXPECT_EQ(IndexSet(a.ToVector()), a);
    EXPECT_EQ(IndexSet(a.ToVector()).Hash(), a.Hash());
  }
}

TEST(IndexSetTest, RemovingEveryMemberGivesTheEmptySet) {
  IndexSet set({5, 700});
  set.Remove(5);
  set.Remove(700);
  EXPECT_TRUE(set.Empty());
  EXPECT_EQ(set, IndexSet());
  EXPECT_EQ(set.NextFrom(0), IndexSet::npos);
}

}  // namespace
}  // namespace collage
