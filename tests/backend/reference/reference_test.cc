#include <gtest/gtest.h>

#include <atomic>

#include "collage/backend/host_reference_team.h"
#include "tests/backend/kernel_harness.h"

namespace collage {
namespace {

using namespace testing_backend;  // NOLINT(google-build-using-namespace)

TEST(ReferenceBackendTest, RunsAnyStraightLineFunction) {
  const Expr x = Input({1, 3, 8, 8});
  const Expr y = Input({1, 4, 8, 8});
  const Expr convolution = CallOp("nn.conv2d", {x, RandomConstant({4, 3, 3, 3}, 1)}, {{"padding", std::vector<int64_t>{1, 1, 1, 1}}});
  const Expr body = CallOp("nn.softmax", {CallOp("nn.batch_flatten", {CallOp("add", {convolution, y})})});
  EXPECT_EQ(CheckAllVariants(BackendNamed("reference"), FunctionOf({x, y}, body)).size(), 1u);
}

TEST(ReferenceBackendTest, AResultMayBeAParameter) {
  const Expr x = Input({2, 3});
  EXPECT_EQ(CheckAllVariants(BackendNamed("reference"), FunctionOf({x}, x)).size(), 1u);
}

TEST(ReferenceBackendTest, EveryOperatorWithAKernelIsSupported) {
  const BackendRules rules = BackendNamed("reference").Rules();
  ASSERT_EQ(rules.style, BackendRules::Style::kPredicate);
  const Expr x = Input({2, 3});
  EXPECT_TRUE(rules.supports(CallOp("nn.relu", {x})).accepted);
  EXPECT_FALSE(rules.supports(x).accepted);
}

TEST(HostReferenceTeamTest, SharesWhatTheThreadComputesAsLongAsItLives) {
  constexpr int64_t kCount = 1000;
  std::atomic<int64_t> pieces = 0;
  std::atomic<int64_t> sum = 0;
  const auto share = [&] {
    pieces = sum = 0;
    ShareAmongTeam(kCount, [&](int64_t begin, int64_t end) { ++pieces, sum += end - begin; });
  };
  {
    const HostReferenceTeam team(2);
    share();
    EXPECT_EQ(pieces, 2);
    EXPECT_EQ(sum, kCount);
  }
  share();
  EXPECT_EQ(pieces, 1);
}

}  // namespace
}  // namespace collage
