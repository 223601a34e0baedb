#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/backend/bytes_of_code.h"
#include "tests/backend/cast_values.h"
#include "tests/backend/generated_functions.h"
#include "tests/backend/kernel_harness.h"

namespace collage {
namespace {

using namespace testing_backend;  // NOLINT(google-build-using-namespace)
using ::testing::HasSubstr;

const Backend& C() { return BackendNamed("c"); }

/// relu(x * 1.5 + bias), then softmax: loops over rows behind a chain.
Expr Chain() {
  const Expr x = Input({6, 40});
  const Expr sum = CallOp("add", {CallOp("multiply", {x, Scalar(1.5)}), RandomConstant({40}, 3)});
  return FunctionOf({x}, CallOp("nn.softmax", {CallOp("nn.relu", {sum})}));
}

std::unique_ptr<Kernel> Compile(const Expr& function) {
  const Function& primitive = *function->As<Function>();
  Result<std::unique_ptr<Kernel>> kernel = C().Compile(primitive, Cpu(2), C().Variants(primitive, Cpu(2)).at(0));
  COLLAGE_CHECK(kernel.has_value(), kernel ? "" : kernel.error().message);
  return std::move(*kernel);
}

TEST(CBackendTest, ChainsAndLoopsAreOneKernel) {
  CheckAllVariants(C(), Chain());
  const Expr x = Input({2, 6, 9, 8});
  const Expr convolution =
      CallOp("nn.conv2d", {x, RandomConstant({4, 3, 3, 3}, 2)}, {{"groups", 2}, {"padding", std::vector<int64_t>{1, 1}}});
  const Expr pool = CallOp("nn.max_pool2d", {CallOp("nn.relu", {convolution})},
                           {{"pool_size", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  CheckAllVariants(C(), FunctionOf({x}, pool));
  CheckAllVariants(C(), FunctionOf({x}, CallOp("transpose", {CallOp("tanh", {x})}, {{"axes", std::vector<int64_t>{0, 2, 3, 1}}})));
}

TEST(CBackendTest, AllThatIsGeneratedComputesWhatTheReferenceDoes) {
  for (const auto& [name, function] : GeneratedFunctions()) {
    SCOPED_TRACE(name);
    CheckAllVariants(C(), function);
  }
}

TEST(CBackendTest, EveryNumberIsCastAsTheReferenceDoes) {
  ForEachCast([](const Expr& function, const Tensor& values) { ExpectBits(Runner(Compile(function))({values}), function, values); });
}

TEST(CBackendTest, OneValueAsTwoResultsIsDeclined) {
  const Expr x = Input({3, 4});
  const Expr tanh = CallOp("tanh", {x});
  EXPECT_TRUE(C().Variants(*FunctionOf({x}, MakeTuple({tanh, tanh}))->As<Function>(), Cpu(1)).empty());
  EXPECT_FALSE(C().Variants(*FunctionOf({x}, MakeTuple({tanh, CallOp("exp", {tanh})}))->As<Function>(), Cpu(1)).empty());
}

TEST(CBackendTest, LayersOfOneShapeShareTheirCode) {
  const auto layer = [](uint64_t seed, double factor) {
    const Expr x = Input({5, 30});
    return FunctionOf({x}, CallOp("multiply", {CallOp("add", {x, RandomConstant({30}, seed)}), Scalar(factor)}));
  };
  const std::unique_ptr<Kernel> first = Compile(layer(1, 1.5));
  const size_t of_one = testing::BytesOfCode();
  EXPECT_GT(of_one, 0u);
  const std::unique_ptr<Kernel> second = Compile(layer(2, 1.5));
  EXPECT_EQ(testing::BytesOfCode(), of_one);
  const std::unique_ptr<Kernel> other = Compile(layer(2, 2.5));
  EXPECT_GT(testing::BytesOfCode(), of_one);
  CheckAllVariants(C(), layer(3, 1.5));
}

TEST(CBackendTest, ASavedKernelHoldsItsSourceAndRunsWithoutTheCompiler) {
  const Expr function = Chain();
  const std::string saved = Compile(function)->Serialize();
  EXPECT_THAT(saved, HasSubstr("void collage_0(void* const* tensors, int begin, int end) {"));
  Result<std::unique_ptr<Kernel>> loaded = C().Load(saved, Cpu(2));
  ASSERT_TRUE(loaded) << loaded.error().message;
  Runner original(Compile(function));
  Runner again(std::move(*loaded));
  const std::vector<Tensor> inputs = RandomInputs(function);
  EXPECT_TRUE(BitwiseEqual(original(inputs), again(inputs)));
  Runner twin(again.kernel().Twin());
  EXPECT_TRUE(BitwiseEqual(original(inputs), twin(inputs)));
}

TEST(CBackendTest, DamagedKernelsAreRefusedOrHarmless) {
  const std::string saved = Compile(Chain())->Serialize();
  for (size_t size = 0; size < saved.size(); size += 1 + size / 50) EXPECT_FALSE(C().Load(saved.substr(0, size), Cpu(1))) << size;
  EXPECT_FALSE(C().Load(saved + "x", Cpu(1)));
  // Loading links, but does not run.
  for (size_t at = 0; at < saved.size(); at += 3) {
    std::string damaged = saved;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    (void)C().Load(damaged, Cpu(1));
  }
  std::string elsewhere = saved;
  const size_t processor = saved.find("cpu-");
  ASSERT_NE(processor, std::string::npos);
  elsewhere[processor + 4] = elsewhere[processor + 4] == '0' ? '1' : '0';
  EXPECT_THAT(C().Load(elsewhere, Cpu(1)).error().message, HasSubstr("another processor"));
}

TEST(CBackendTest, TypesWithoutCodeAreNamed) {
  const Verdict verdict = C().Rules().supports(CallOp("abs", {MakeVar("x", TensorType{{2, 3}, DType::kFloat64})}));
  EXPECT_FALSE(verdict.accepted);
  EXPECT_EQ(verdict.reason, "c: tensors of float64");
}

}  // namespace
}  // namespace collage
