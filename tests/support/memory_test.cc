#include "collage/support/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace collage {
namespace {

bool IsAligned(const std::byte* memory) { return reinterpret_cast<uintptr_t>(memory) % 64 == 0; }

TEST(MemoryTest, BuffersAreZeroedAndAligned) {
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{100}, size_t{1} << 20, (size_t{9} << 20) + 1}) {
    const std::shared_ptr<std::byte> buffer = AllocateBuffer(bytes);
    EXPECT_TRUE(IsAligned(buffer.get())) << bytes;
    EXPECT_TRUE(std::all_of(buffer.get(), buffer.get() + bytes, [](std::byte byte) { return byte == std::byte{0}; })) << bytes;
  }
}

// Blocks of one chunk must not share bytes, and must outlive each other in any order.
TEST(MemoryTest, WeightsKeepTheirContent) {
  struct Block {
    std::shared_ptr<std::byte> memory;
    size_t bytes;
    std::byte fill;
  };
  std::vector<Block> blocks;
  for (size_t i = 0; i < 300; ++i) {
    const size_t bytes = (i * 7919) % 300000 + 1;
    Block block{AllocateWeights(bytes), bytes, static_cast<std::byte>(i)};
    EXPECT_TRUE(IsAligned(block.memory.get()));
    EXPECT_EQ(block.memory.get()[bytes - 1], std::byte{0});
    std::fill_n(block.memory.get(), bytes, block.fill);
    blocks.push_back(std::move(block));
    if (i % 3 == 0) blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(blocks.size() / 2));
  }
  for (const Block& block : blocks) {
    EXPECT_TRUE(std::all_of(block.memory.get(), block.memory.get() + block.bytes, [&](std::byte byte) { return byte == block.fill; }));
  }
}

}  // namespace
}  // namespace collage
