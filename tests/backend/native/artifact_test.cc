#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/backend/registry.h"
#include "tests/backend/native/native_harness.h"

namespace collage {
namespace {

using namespace collage::testing;  // NOLINT(google-build-using-namespace)

const Device kDevice{DeviceKind::kCpu, 0, 1};

const Backend& Native() { return **FindBackend("native", kDevice); }

std::string SavedKernel() {
  const Expr x = Parameter("x", {4, 50});
  const Expr function = *MakeFunction({x}, CallNamed("nn.softmax", {CallNamed("add", {x, RandomConstant({50}, 1)})}));
  const Function& primitive = *function->As<Function>();
  const Result<std::unique_ptr<Kernel>> kernel = Native().Compile(primitive, kDevice, Native().Variants(primitive, kDevice)[0]);
  return kernel ? (*kernel)->Serialize() : kernel.error().message;
}

TEST(NativeArtifact, TruncatedOnesAreRefused) {
  const std::string saved = SavedKernel();
  ASSERT_TRUE(Native().Load(saved, kDevice).has_value());
  for (size_t size = 0; size < saved.size(); size += 1 + size / 50)
    EXPECT_FALSE(Native().Load(saved.substr(0, size), kDevice).has_value()) << size;
  EXPECT_FALSE(Native().Load(saved + "x", kDevice).has_value());
}

TEST(NativeArtifact, DamagedTablesAreRefusedOrHarmless) {
  const std::string saved = SavedKernel();
  const size_t object = saved.find("\177ELF");
  ASSERT_NE(object, std::string::npos);
  // Loading links, but does not run: whatever the tables say, nothing outside of the object may be read or written.
  const auto flip = [&](size_t at) {
    std::string damaged = saved;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    (void)Native().Load(damaged, kDevice);
  };
  for (size_t at = 0; at < object + 64; ++at) flip(at);
  for (size_t at = saved.size() - std::min<size_t>(saved.size() - object, 6000); at < saved.size(); at += 3) flip(at);
}

TEST(NativeArtifact, OfAnotherProcessorIsRefused) {
  std::string saved = SavedKernel();
  const size_t processor = saved.find("cpu-");
  ASSERT_NE(processor, std::string::npos);
  saved[processor + 4] = saved[processor + 4] == '0' ? '1' : '0';
  const Result<std::unique_ptr<Kernel>> loaded = Native().Load(saved, kDevice);
  ASSERT_FALSE(loaded.has_value());
  EXPECT_THAT(loaded.error().message, ::testing::HasSubstr("another processor"));
}

TEST(NativeErrors, WhatCannotBeCompiledSaysWhy) {
  const Expr x = Parameter("x", {2, 3}, DType::kFloat16);
  const Expr function = *MakeFunction({x}, CallNamed("copy", {x}));
  EXPECT_TRUE(Native().Variants(*function->As<Function>(), kDevice).empty());
  const Result<std::unique_ptr<Kernel>> kernel = Native().Compile(*function->As<Function>(), kDevice, {"default", {Layout()}, {Layout()}});
  ASSERT_FALSE(kernel.has_value());
  EXPECT_THAT(kernel.error().message, ::testing::HasSubstr("tensors of float16"));
  Expr deep = Parameter("y", {4});
  const Expr y = deep;
  for (int i = 0; i < 600; ++i) deep = CallNamed("abs", {deep});
  const Expr chain = *MakeFunction({y}, deep);
  EXPECT_TRUE(Native().Variants(*chain->As<Function>(), kDevice).empty());
}

TEST(NativeErrors, VariantsOfAnotherFunctionAreRefused) {
  const Expr x = Parameter("x", {2, 3});
  const Expr function = *MakeFunction({x}, CallNamed("copy", {x}));
  EXPECT_FALSE(Native().Compile(*function->As<Function>(), kDevice, {"default", {}, {}}).has_value());
  EXPECT_FALSE(
      Native().Compile(*function->As<Function>(), kDevice, {"default/acdb", {Layout::Of("acdb")}, {Layout::Of("acdb")}}).has_value());
}

}  // namespace
}  // namespace collage
