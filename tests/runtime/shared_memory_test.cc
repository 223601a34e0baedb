#include "collage/runtime/shared_memory.h"

#include <gmock/gmock.h>

#include <random>

namespace collage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

bool Always(size_t) { return true; }

class SharedMemoryTest : public testing::Test {
 protected:
  size_t Written(size_t bytes) {
    memory_.Add(bytes, true);
    return count_++;
  }
  size_t Shown(size_t bytes) {
    memory_.Add(bytes, false);
    return count_++;
  }
  int64_t Distance(size_t inner, size_t outer) {
    EXPECT_EQ(memory_.Find(inner).piece, memory_.Find(outer).piece);
    return memory_.Find(inner).offset - memory_.Find(outer).offset;
  }

  SharedMemory memory_;
  size_t count_ = 0;
};

TEST_F(SharedMemoryTest, JoinsOfJoinsThatGrowShareOnePiece) {
  const size_t a = Written(64);
  const size_t b = Written(128);
  const size_t first = Shown(192);
  EXPECT_THAT(memory_.Join({{a, 0}, {b, 64}}, first, Always), IsEmpty());
  const size_t c = Written(64);
  const size_t second = Shown(256);
  // The same parts again, as in a dense block that joins all that came before.
  EXPECT_THAT(memory_.Join({{a, 0}, {b, 64}, {c, 192}}, second, Always), IsEmpty());
  const size_t d = Written(64);
  const size_t third = Shown(320);
  EXPECT_THAT(memory_.Join({{second, 0}, {d, 256}}, third, Always), IsEmpty());
  EXPECT_EQ(Distance(first, third), 0);
  EXPECT_EQ(Distance(c, third), 192);
  EXPECT_EQ(memory_.BytesOf(memory_.Find(a).piece), 320u);
  EXPECT_TRUE(memory_.IsWhole(third));
  EXPECT_FALSE(memory_.IsWhole(first));
}

TEST_F(SharedMemoryTest, PartsOfATensorThatAreJoinedAgainInItsOrderTakeItAlong) {
  const size_t x = Written(128);
  const size_t low = Shown(64);
  const size_t high = Shown(64);
  memory_.Show(low, x, 0);
  memory_.Show(high, x, 64);
  const size_t y = Written(64);
  const size_t join = Shown(192);
  EXPECT_THAT(memory_.Join({{low, 0}, {high, 64}, {y, 128}}, join, Always), IsEmpty());
  EXPECT_EQ(Distance(x, join), 0);
  // In another order one of them is elsewhere: the last one lies at the begin of x, with room before it.
  const size_t z = Written(64);
  const size_t other = Shown(192);
  EXPECT_THAT(memory_.Join({{z, 0}, {high, 64}, {low, 128}}, other, Always), ElementsAre(1));
}

TEST_F(SharedMemoryTest, WhatHasAPlaceElsewhereIsLeft) {
  const size_t a = Written(64);
  const size_t b = Written(64);
  const size_t first = Shown(128);
  EXPECT_THAT(memory_.Join({{a, 0}, {b, 64}}, first, Always), IsEmpty());
  const size_t c = Written(64);
  const size_t second = Shown(128);
  // Behind a lies b, so c could not.
  EXPECT_THAT(memory_.Join({{a, 0}, {c, 64}}, second, Always), ElementsAre(0));
  EXPECT_NE(memory_.Find(first).piece, memory_.Find(second).piece);
  const size_t third = Shown(128);
  EXPECT_THAT(memory_.Join({{c, 0}, {c, 64}}, third, [&](size_t) { return false; }), ElementsAre(0, 1));
}

TEST_F(SharedMemoryTest, ATakenOverBufferLiesWhereTheLaterOneDoes) {
  const size_t a = Written(64);
  const size_t b = Written(64);
  const size_t join = Shown(128);
  EXPECT_THAT(memory_.Join({{a, 0}, {b, 64}}, join, Always), IsEmpty());
  const size_t before = Written(64);
  memory_.TakeOver(before, b);
  EXPECT_EQ(Distance(before, join), 64);
  EXPECT_TRUE(memory_.Overlap(before, b));
  EXPECT_TRUE(memory_.Overlap(before, join));
  EXPECT_FALSE(memory_.Overlap(before, a));
}

TEST_F(SharedMemoryTest, InRandomJoinsNoTwoThatAreWrittenOverlapAndPartsLieWhereTheyShould) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    memory_ = {};
    count_ = 0;
    std::vector<size_t> written;
    std::vector<size_t> all;
    std::vector<size_t> bytes;
    const auto note = [&](size_t buffer, size_t size) {
      all.push_back(buffer);
      bytes.push_back(size);
      return buffer;
    };
    for (int step = 0; step < 20; ++step) {
      if (all.empty() || random() % 2 == 0) {
        const size_t size = 64 * (1 + random() % 3);
        written.push_back(note(Written(size), size));
        continue;
      }
      std::vector<SharedMemory::Part> parts;
      size_t offset = 0;
      for (size_t i = 1 + random() % 4; i > 0; --i) {
        const size_t part = all[all.size() - 1 - random() % std::min<size_t>(all.size(), 6)];
        parts.push_back({part, offset});
        offset += bytes[part];
      }
      const size_t join = note(Shown(offset), offset);
      std::vector<size_t> left = memory_.Join(parts, join, Always);
      for (const size_t i : left) {
        const size_t copy = note(Written(bytes[parts[i].buffer]), bytes[parts[i].buffer]);
        written.push_back(copy);
        ASSERT_THAT(memory_.Join({{copy, parts[i].offset}}, join, Always), IsEmpty()) << "round " << round;
        parts[i].buffer = copy;
      }
      for (const SharedMemory::Part& part : parts) ASSERT_EQ(Distance(part.buffer, join), static_cast<int64_t>(part.offset));
    }
    for (const size_t a : written) {
      for (const size_t b : written) ASSERT_TRUE(a == b || !memory_.Overlap(a, b)) << "round " << round << ": " << a << ", " << b;
    }
  }
}

}  // namespace
}  // namespace collage
