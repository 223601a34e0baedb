#include <gtest/gtest.h>

#include "tests/backend/kernel_harness.h"

namespace collage {
namespace {

using namespace testing_backend;  // NOLINT(google-build-using-namespace)

const Backend& OpenBlas() {
  static const Backend& backend = BackendNamed("openblas");
  return backend;
}

TEST(OpenBlasTest, ProductsOfVariablesBroadcastTheirBatches) {
  struct Case {
    Shape a, b;
    bool transpose_a, transpose_b;
  };
  for (const Case& c : std::vector<Case>{{{3, 4, 5}, {5, 7}, false, false},
                                         {{2, 1, 4, 5}, {3, 7, 5}, false, true},
                                         {{5, 4}, {5, 7}, true, false},
                                         {{2, 5, 4}, {2, 7, 5}, true, true},
                                         {{32, 32}, {32, 32}, false, false}}) {
    const Expr a = Input(c.a);
    const Expr b = Input(c.b);
    CheckAllVariants(OpenBlas(),
                     FunctionOf({a, b}, CallOp("nn.matmul", {a, b}, {{"transpose_a", c.transpose_a}, {"transpose_b", c.transpose_b}})));
  }
  const Expr a = Input({4, 3, 5});
  const Expr b = Input({4, 6, 5});
  CheckAllVariants(OpenBlas(), FunctionOf({a, b}, CallOp("nn.batch_matmul", {a, b})));
}

TEST(OpenBlasTest, DenseTakesBiasAndRelu) {
  const Expr x = Input({2, 3, 20});
  const Expr dense = CallOp("nn.dense", {x, RandomConstant({17, 20}, 2)});
  const Expr biased = CallOp("nn.bias_add", {dense, RandomConstant({17}, 3)}, {{"axis", -1}});
  for (const Expr& body : {dense, biased, CallOp("nn.relu", {biased})}) CheckAllVariants(OpenBlas(), FunctionOf({x}, body));
}

TEST(OpenBlasTest, ANumberIsABiasOfOneColumn) {
  const Expr x = Input({4, 5});
  const Expr column = CallOp("nn.matmul", {x, RandomConstant({5, 1}, 2)});
  CheckAllVariants(OpenBlas(), FunctionOf({x}, CallOp("nn.relu", {CallOp("add", {column, Scalar(0.5)})})));
}

TEST(OpenBlasTest, KernelsAreForInstructionsThatTheProcessorHas) {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) GTEST_SKIP() << "the oldest kernels are right for this processor";
  const std::string version = OpenBlas().Probe(Cpu(1)).version;
  EXPECT_NE(version.find(" for "), std::string::npos) << version;
  EXPECT_EQ(version.find("Prescott"), std::string::npos) << version;
#else
  GTEST_SKIP() << "its processors are of another kind";
#endif
}

TEST(OpenBlasTest, OtherFunctionsAreDeclined) {
  const Expr x = Input({4, 4});
  for (const Expr& body : {CallOp("nn.relu", {x}), CallOp("sigmoid", {CallOp("nn.matmul", {x, x})}),
                           CallOp("add", {CallOp("nn.matmul", {x, x}), RandomConstant({4, 1}, 1)})})
    EXPECT_TRUE(OpenBlas().Variants(*FunctionOf({x}, body)->As<Function>(), Cpu(1)).empty());
}

}  // namespace
}  // namespace collage
