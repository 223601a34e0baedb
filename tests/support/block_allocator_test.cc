#include "collage/support/block_allocator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace collage {
namespace {

struct Held {
  unsigned char* bytes;
  size_t size;
  unsigned char fill;
};

bool IsIntact(const Held& held) {
  for (size_t i = 0; i < held.size; ++i) {
    if (held.bytes[i] != held.fill) return false;
  }
  return true;
}

TEST(BlockAllocatorTest, ObjectsOfAllSizesKeepWhatIsWrittenWhileOthersComeAndGo) {
  std::mt19937 random(1);
  std::vector<Held> held;
  for (int step = 0; step < 50'000; ++step) {
    if (held.empty() || random() % 5 < 3) {
      const size_t size = random() % 100 == 0 ? random() % 70'000 : random() % 300;
      Held one{static_cast<unsigned char*>(AllocateInBlock(size)), size, static_cast<unsigned char>(random())};
      ASSERT_EQ(reinterpret_cast<uintptr_t>(one.bytes) % 8, 0u);
      std::memset(one.bytes, one.fill, size);
      held.push_back(one);
    } else {
      std::swap(held[random() % held.size()], held.back());
      ASSERT_TRUE(IsIntact(held.back()));
      FreeInBlock(held.back().bytes, held.back().size);
      held.pop_back();
    }
  }
  for (const Held& one : held) {
    ASSERT_TRUE(IsIntact(one));
    FreeInBlock(one.bytes, one.size);
  }
}

TEST(BlockAllocatorTest, ObjectsOutliveTheThreadThatMadeThem) {
  std::vector<Held> held;
  std::thread maker([&] {
    for (int i = 0; i < 2000; ++i) {
      held.push_back({static_cast<unsigned char*>(AllocateInBlock(100)), 100, static_cast<unsigned char>(i)});
      std::memset(held.back().bytes, held.back().fill, 100);
    }
  });
  maker.join();
  for (const Held& one : held) {
    ASSERT_TRUE(IsIntact(one));
    FreeInBlock(one.bytes, one.size);
  }
}

}  // namespace
}  // namespace collage
