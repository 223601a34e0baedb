#include "collage/op/reference_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/op/op_testing.h"

namespace collage {
namespace {

TEST(ReferenceTeamTest, SharedWorkGivesTheBitsOfOneThread) {
  const std::vector<Tensor> matrices = {Random(T({600, 70}), 1), Random(T({70, 300}), 2)};
  const std::vector<Tensor> images = {Random(T({1, 3, 40, 40}), 3), Random(T({8, 3, 3, 3}), 4)};
  const Tensor product = Apply("nn.matmul", matrices);
  const Tensor convolution = Apply("nn.conv2d", images);
  std::atomic<int> pieces = 0;
  const ReferenceTeam team = [&](int64_t count, const std::function<void(int64_t, int64_t)>& body) {
    std::vector<std::thread> threads;
    for (int64_t i = 0; i < count; ++i) threads.emplace_back([&body, &pieces, i] { body(i, i + 1), ++pieces; });
    for (std::thread& thread : threads) thread.join();
  };
  {
    const UseReferenceTeam use(team);
    EXPECT_TRUE(BitwiseEqual(Apply("nn.matmul", matrices), product));
    EXPECT_EQ(pieces, 30) << "ten blocks of rows, three of columns";
    EXPECT_TRUE(BitwiseEqual(Apply("nn.conv2d", images), convolution));
    EXPECT_GT(pieces, 30);
  }
  pieces = 0;
  Apply("nn.matmul", matrices);
  EXPECT_EQ(pieces, 0) << "there is no team any more";
}

}  // namespace
}  // namespace collage
