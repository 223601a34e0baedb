#include "collage/candidate/number_tables.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <vector>

namespace collage {
namespace {

TEST(NumberTables, KeepEachValueOnceInEachTableUnderHashesThatClash) {
  // Few hashes for many values, so that what decides is equality.
  std::mt19937_64 random(7);
  NumberTables tables;
  std::vector<uint64_t> values;
  std::vector<std::set<uint64_t>> expected(5);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 2000; ++i) {
      const uint64_t value = random() % 300;
      const size_t table = random() % expected.size();
      const auto is_equal = [&](uint32_t number) { return values[number] == value; };
      EXPECT_EQ(tables.Contains(table, value % 7, is_equal), expected[table].contains(value));
      const bool is_new = expected[table].insert(value).second;
      EXPECT_EQ(tables.Insert(table, value % 7, values.size(), is_equal), is_new);
      if (is_new) values.push_back(value);
    }
    tables.Clear();
    values.clear();
    for (std::set<uint64_t>& table : expected) table.clear();
    EXPECT_FALSE(tables.Contains(0, 0, [](uint32_t) { return true; }));
  }
}

}  // namespace
}  // namespace collage
