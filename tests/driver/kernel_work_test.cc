#include "collage/driver/kernel_work.h"

#include <gtest/gtest.h>

#include "collage/ir/parse.h"
#include "collage/op/table.h"

namespace collage {
namespace {

KernelFacts Facts(const std::string& text) {
  return WorkOf(*ParseExpr(text, Operators()).value().expr->As<Function>(), {DeviceKind::kCpu, 0, 1});
}

double SecondsOfFlops(double flops) { return flops / LimitsOf({DeviceKind::kCpu, 0, 1}).flops_per_second; }

constexpr const char* kConvolution = "nn.conv2d(%x, %w, padding=[1, 1, 1, 1])";

std::string WithPool(const std::string& pool, const std::string& rows) {
  return "fn (%x: Tensor[(1, 64, 32, 32), float32], %w: Tensor[(64, 64, 3, 3), float32]) -> Tensor[(1, 64, " + rows + ", " + rows +
         "), float32] { nn.max_pool2d(" + kConvolution + ", " + pool + ") }";
}

TEST(KernelWorkTest, AConvolutionBeforeAPoolIsWorkWhereWindowsMeetAllOfIt) {
  // Of 32 positions, the outer taps leave out one each.
  const double flops = 2.0 * 64 * 64 * (32 * 3 - 2) * (32 * 3 - 2);
  const KernelFacts all = Facts(WithPool("pool_size=[2, 2], strides=[2, 2]", "16"));
  const double of_pool = 64 * 16 * 16 * 4;
  EXPECT_NEAR(all.roofline.ToSeconds(), SecondsOfFlops(flops + of_pool), 1e-12);
  // Every other row and column is read by nobody, so no kernel has to compute it.
  const KernelFacts some = Facts(WithPool("pool_size=[1, 1], strides=[2, 2]", "16"));
  EXPECT_LT(some.roofline.ToSeconds(), 0.1 * SecondsOfFlops(flops));
  EXPECT_GT(some.flops, flops) << "by their definitions the operators are the whole work";
}

TEST(KernelWorkTest, WeightsThatMeetOnlyPaddingAreNotRead) {
  const KernelFacts facts =
      Facts("fn (%x: Tensor[(1, 8, 1, 1), float32], %w: Tensor[(4096, 8, 3, 3), float32]) -> Tensor[(1, 4096, 1, 1), float32] { " +
            std::string(kConvolution) + " }");
  const double touched = 4.0 * (8 + 4096 * 8 + 4096);
  EXPECT_NEAR(facts.roofline.ToSeconds(), touched / LimitsOf({DeviceKind::kCpu, 0, 1}).bytes_per_second, 1e-10);
}

TEST(KernelWorkTest, ATransposedConvolutionIsWorkWhereItsTapsMeetTheResult) {
  // Of 4 taps at 16 positions, padding cuts off one at each end.
  const KernelFacts facts = Facts(
      "fn (%x: Tensor[(1, 64, 16, 16), float32], %w: Tensor[(64, 32, 4, 4), float32]) -> Tensor[(1, 32, 32, 32), float32] { "
      "nn.conv2d_transpose(%x, %w, strides=[2, 2], padding=[1, 1, 1, 1]) }");
  EXPECT_NEAR(facts.roofline.ToSeconds(), SecondsOfFlops(2.0 * 64 * 32 * (16 * 4 - 2) * (16 * 4 - 2)), 1e-12);
}

TEST(KernelWorkTest, OfATransposedConvolutionWhatMeetsOnlyPaddingIsNotRead) {
  // Two of four positions in each dimension lie beyond the padding.
  const KernelFacts facts = Facts(
      "fn (%x: Tensor[(1, 4096, 4, 4), float32], %w: Tensor[(4096, 1, 1, 1), float32]) -> Tensor[(1, 1, 3, 3), float32] { "
      "nn.conv2d_transpose(%x, %w, strides=[2, 2], padding=[2, 2, 2, 2]) }");
  const double touched = 4.0 * (4096 * 2 * 2 + 4096 + 9);
  EXPECT_NEAR(facts.roofline.ToSeconds(), touched / LimitsOf({DeviceKind::kCpu, 0, 1}).bytes_per_second, 1e-10);
}

TEST(KernelWorkTest, ConstantsAreReadButNoBound) {
  const Expr x = MakeVar("x", TensorType{{1, 64}});
  const Expr weight = MakeConstant(Tensor(TensorType{{256, 64}}));
  const Expr function = *MakeFunction({x}, *MakeCall(Operators().Find("nn.dense"), {x, weight}));
  const KernelFacts facts = WorkOf(*function->As<Function>(), {DeviceKind::kCpu, 0, 1});
  EXPECT_DOUBLE_EQ(facts.bytes, 4.0 * (64 + 256 * 64 + 256));
  EXPECT_NEAR(facts.roofline.ToSeconds(), SecondsOfFlops(2.0 * 64 * 256), 1e-12) << "they may be packed into fewer bytes";
}

}  // namespace
}  // namespace collage
