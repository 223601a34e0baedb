#include "collage/backend/cuda/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/backend/cuda/compiler.h"
#include "tests/backend/generated_functions.h"

namespace collage::cuda_source {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

OpSequence SequenceOf(const Expr& function) { return *ToOpSequence(*function->As<Function>()); }

/// Needs no GPU: the compiler makes machine code for any.
TEST(CudaSourceTest, TheCompilerTakesAllThatIsGenerated) {
  if (!Compiler().present) GTEST_SKIP() << Compiler().reason;
  std::string all;
  size_t number = 0;
  for (const auto& [name, function] : testing_backend::GeneratedFunctions()) {
    const OpSequence sequence = SequenceOf(function);
    ASSERT_TRUE(element_code::SupportsSequence(sequence)) << name;
    for (const int lanes : {1, kWarpThreads, kBlockThreads}) {
      if (lanes > 1 && !element_code::HasRows(sequence)) continue;
      const Result<CudaSource> source = GenerateCuda(sequence, lanes);
      ASSERT_TRUE(source) << name << ": " << source.error().message;
      // Each in a namespace of its own, so that the compiler is started once.
      all += "namespace f" + std::to_string(number++) + " {\n" + source->text + "\n#undef INFINITY\n#undef NAN\n}\n";
    }
  }
  // Functions of C language linkage are one in all namespaces.
  for (size_t at = all.find("extern \"C\" "); at != std::string::npos; at = all.find("extern \"C\" ", at)) all.erase(at, 11);
  const Result<std::string> code = CompileCuda(all, 9, 0);
  EXPECT_TRUE(code) << code.error().message;
}

TEST(CudaSourceTest, AnErrorQuotesTheCompiler) {
  if (!Compiler().present) GTEST_SKIP() << Compiler().reason;
  const Result<std::string> code = CompileCuda("__global__ void f(float* x) { *x = unknown; }", 9, 0);
  ASSERT_FALSE(code);
  EXPECT_THAT(code.error().message, HasSubstr("\"unknown\" is undefined"));
}

TEST(CudaSourceTest, ThreadsShareRowsOnlyWhereThereAreRows) {
  for (const auto& [name, function] : testing_backend::GeneratedFunctions()) {
    const OpSequence sequence = SequenceOf(function);
    const CudaSource source = *GenerateCuda(sequence, kWarpThreads);
    bool shares = false;
    for (const element_code::Launch& launch : source.recipe.launches) shares = shares || launch.lanes > 1;
    EXPECT_EQ(shares, element_code::HasRows(sequence)) << name;
    EXPECT_THAT(GenerateCuda(sequence, 1)->text, Not(HasSubstr(" lane "))) << name;
  }
}

TEST(CudaSourceTest, WhatARowsItemsReadIsComputedWhereItIsRead) {
  const Expr x = testing_backend::Input({4, 64});
  const Expr chain = testing_backend::CallOp("multiply", {x, testing_backend::Scalar(0.5)});
  const OpSequence sequence = SequenceOf(testing_backend::FunctionOf({x}, testing_backend::CallOp("nn.softmax", {chain})));
  EXPECT_EQ(GenerateCuda(sequence, kWarpThreads)->recipe.launches.size(), 1u);
  EXPECT_TRUE(GenerateCuda(sequence, kWarpThreads)->recipe.intermediate.empty());
}

}  // namespace
}  // namespace collage::cuda_source
