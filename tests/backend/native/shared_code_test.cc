#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "collage/backend/registry.h"
#include "tests/backend/bytes_of_code.h"
#include "tests/backend/native/native_harness.h"

namespace collage {
namespace {

using namespace collage::testing;  // NOLINT(google-build-using-namespace)

/// tanh(x w + bias) * factor
Expr Layer(const Expr& x, uint64_t seed, double factor) {
  const Expr sum = CallNamed("nn.bias_add", {CallNamed("nn.dense", {x, RandomConstant({24, 20}, seed)}), RandomConstant({24}, seed + 1)});
  return CallNamed("multiply", {CallNamed("tanh", {sum}), ScalarConstant(factor)});
}

std::vector<std::unique_ptr<Kernel>> AllKernels(const Expr& x, const Expr& body) {
  const Expr function = *MakeFunction({x}, body);
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (const int threads : {1, 2}) {
    const Device device{DeviceKind::kCpu, 0, threads};
    const Backend& native = **FindBackend("native", device);
    for (const Variant& variant : native.Variants(*function->As<Function>(), device)) {
      Result<std::unique_ptr<Kernel>> kernel = native.Compile(*function->As<Function>(), device, variant);
      EXPECT_TRUE(kernel) << kernel.error().message;
      if (kernel) kernels.push_back(std::move(*kernel));
    }
  }
  return kernels;
}

TEST(NativeSharedCode, LayersOfOneShapeHaveItTogether) {
  const Expr x = Parameter("x", {4, 20});
  const std::vector<std::unique_ptr<Kernel>> first = AllKernels(x, Layer(x, 1, 0.5));
  const size_t of_one = BytesOfCode();
  EXPECT_GT(of_one, 0u);
  const std::vector<std::unique_ptr<Kernel>> second = AllKernels(x, Layer(x, 3, 0.5));
  EXPECT_EQ(BytesOfCode(), of_one);
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) EXPECT_NE(first[i]->Serialize(), second[i]->Serialize()) << "they have weights of their own";
  std::vector<std::unique_ptr<Kernel>> loaded;
  const Device device{DeviceKind::kCpu, 0, 1};
  loaded.push_back((*FindBackend("native", device))->Load(first[0]->Serialize(), device).value());
  EXPECT_EQ(BytesOfCode(), of_one);
  // What is one number is part of the code.
  const std::vector<std::unique_ptr<Kernel>> other = AllKernels(x, Layer(x, 3, 0.25));
  EXPECT_GT(BytesOfCode(), of_one);
}

TEST(NativeSharedCode, EachComputesWithItsOwnConstants) {
  const Expr x = Parameter("x", {4, 20});
  const std::vector<std::unique_ptr<Kernel>> kept = AllKernels(x, Layer(x, 1, 0.5));
  for (const double factor : {0.5, -3.0}) {
    for (const uint64_t seed : {1, 3, 5}) ExpectMatchesReference({x}, Layer(x, seed, factor));
  }
}

TEST(NativeSharedCode, WhatDiffersInMoreHasItsOwn) {
  const Expr x = Parameter("x", {4, 20});
  const auto softmax = [&](int64_t axis) { return CallNamed("nn.softmax", {x}, {{"axis", axis}}); };
  const std::vector<std::unique_ptr<Kernel>> kept = AllKernels(x, softmax(0));
  ExpectMatchesReference({x}, softmax(1));
  const auto chain = [&](const char* outer, const char* inner) { return CallNamed(outer, {CallNamed(inner, {x})}); };
  const std::vector<std::unique_ptr<Kernel>> chained = AllKernels(x, chain("abs", "tanh"));
  ExpectMatchesReference({x}, chain("tanh", "abs"));
  const auto difference = [&](bool swapped) {
    const Expr weights = RandomConstant({4, 20}, 9);
    return CallNamed("subtract", swapped ? std::vector<Expr>{weights, x} : std::vector<Expr>{x, weights});
  };
  const std::vector<std::unique_ptr<Kernel>> differences = AllKernels(x, difference(false));
  ExpectMatchesReference({x}, difference(true));
  // One constant that is read twice, and two.
  const Expr weights = RandomConstant({4, 20}, 9);
  const auto sum = [&](const Expr& added) { return CallNamed("add", {CallNamed("multiply", {x, weights}), added}); };
  const std::vector<std::unique_ptr<Kernel>> of_one = AllKernels(x, sum(weights));
  ExpectMatchesReference({x}, sum(RandomConstant({4, 20}, 10)));
}

}  // namespace
}  // namespace collage
