// Constants on their way to the worker: what is no weight keeps its values.

#include "collage/measure/worker_messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/op/table.h"
#include "collage/tensor/strings.h"
#include "tests/measure/fault_backend.h"

namespace collage {
namespace {

constexpr int64_t kElements = 200 * 500;
const TensorType kType{{200, 500}, DType::kFloat32};

/// The constant as the worker has it, and the bytes of the message.
std::pair<Tensor, size_t> Received(const Tensor& constant) {
  static const FaultBackend backend;
  const std::string type = ToString(constant.type());
  const std::string text = "fn (%x: " + type + ") { where(equal(%x, %x), meta[relay.Constant][0], meta[relay.Constant][0]) }";
  const Expr function = ParseExpr(text, Operators(), {.constants = {constant}}).value().expr;
  const nlohmann::json message = ToMessage(KernelJob{function, &backend, {"right", {}, {}}, Device{}, {}});
  const ReceivedJob job = JobFromMessage(message).value();
  return {PrintExpr(job.function).constants.at(0), nlohmann::json::to_msgpack(message).size()};
}

template <class Function>
Tensor Made(Function function) {
  Tensor tensor(kType);
  for (int64_t i = 0; i < kElements; ++i) tensor.MutableData<float>()[i] = static_cast<float>(function(i / 500, i % 500));
  return tensor;
}

TEST(ConstantsOfJobsTest, WhatIsNoWeightKeepsItsValues) {
  const double infinity = std::numeric_limits<double>::infinity();
  Tensor one_nan(kType);
  FillRandom(one_nan, 1);
  one_nan.MutableData<float>()[77777] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::pair<const char*, Tensor>> constants = {
      {"a causal mask", Made([&](int64_t i, int64_t j) { return j > i ? -infinity : 0; })},
      {"a mask of -10000", Made([&](int64_t i, int64_t j) { return j > i ? -1e4 : 0; })},
      {"a mask of 0 and 1", Made([](int64_t i, int64_t j) { return (i + j) % 3 == 0; })},
      {"indices", Made([](int64_t i, int64_t j) { return 500 * i + j; })},
      {"a few fractions", Made([](int64_t i, int64_t j) { return 0.1 * static_cast<double>((i * j) % 17); })},
      {"one that is not a number", one_nan},
      {"fill", Made([](int64_t, int64_t) { return 0.7; })}};
  for (const auto& [name, constant] : constants) EXPECT_TRUE(BitwiseEqual(Received(constant).first, constant)) << name;
}

TEST(ConstantsOfJobsTest, InputsAreDrawnFromTheRangesThatAreKnown) {
  static const FaultBackend backend;
  const Expr function = ParseExpr("fn (%x: Tensor[(2), float32]) { nn.relu(%x) }", Operators()).value().expr;
  KernelJob job{function, &backend, {"right", {}, {}}, Device{}, {}};
  EXPECT_FALSE(JobFromMessage(ToMessage(job)).value().inputs);
  job.inputs = InputRanges{{0.25, 1}, {0, 7}};
  const std::optional<InputRanges> received = JobFromMessage(ToMessage(job)).value().inputs;
  ASSERT_TRUE(received);
  EXPECT_EQ(std::pair(received->numbers.low, received->numbers.high), std::pair(0.25, 1.0));
  EXPECT_EQ(std::pair(received->integers.low, received->integers.high), std::pair(0.0, 7.0));
}

// Their elements are numbers of this process; those on the way are its texts.
TEST(ConstantsOfJobsTest, StringsKeepTheirTexts) {
  static const FaultBackend backend;
  const Tensor words = StringTensor({3}, {"", "one word", "z\xc3\xbcrich"});
  const Expr function =
      ParseExpr("fn (%x: Tensor[(3), string]) { equal(%x, meta[relay.Constant][0]) }", Operators(), {.constants = {words}}).value().expr;
  const nlohmann::json message = ToMessage(KernelJob{function, &backend, {"right", {}, {}}, Device{}, {}});
  EXPECT_EQ(StringsOf(PrintExpr(JobFromMessage(message)->function).constants.at(0)), StringsOf(words));
  const auto& sent = message.at("constants").at(0).at("strings").get_binary();
  EXPECT_EQ(std::string(sent.begin(), sent.end()), WriteStrings(words));
  nlohmann::json damaged = message;
  damaged["constants"][0]["strings"] = nlohmann::json::binary({1, 0});
  EXPECT_EQ(JobFromMessage(damaged).error().message, "2:13: constant 0: expected 3 strings, found 2 bytes");
}

TEST(ConstantsOfJobsTest, OtherTypesKeepTheirValues) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat64, DType::kInt64, DType::kInt8, DType::kBool}) {
    Tensor constant(TensorType{{200, 500}, dtype});
    FillRandom(constant, 1);
    const Tensor cast_away = [&] {
      const std::string type = ToString(constant.type());
      const std::string text = "fn (%x: " + type + ") { (%x, meta[relay.Constant][0]) }";
      static const FaultBackend backend;
      const Expr function = ParseExpr(text, Operators(), {.constants = {constant}}).value().expr;
      const nlohmann::json message = ToMessage(KernelJob{function, &backend, {"right", {}, {}}, Device{}, {}});
      return PrintExpr(JobFromMessage(message)->function).constants.at(0);
    }();
    EXPECT_TRUE(BitwiseEqual(cast_away, constant)) << Name(dtype);
  }
}

// The two forms of a model agree on its own weights only.
TEST(ConstantsOfJobsTest, AllWeightsAreSentWhereThatIsAskedFor) {
  static const FaultBackend backend;
  Tensor weights(kType);
  FillRandom(weights, 1);
  const std::string text = "fn (%x: " + ToString(kType) + ") { add(%x, meta[relay.Constant][0]) }";
  const Expr function = ParseExpr(text, Operators(), {.constants = {weights}}).value().expr;
  const KernelJob job{function, &backend, {"right", {}, {}}, Device{}, {}};
  const auto received = [&](Weights which) { return PrintExpr(JobFromMessage(ToMessage(job, which))->function).constants.at(0); };
  EXPECT_TRUE(BitwiseEqual(received(Weights::kAll), weights));
  EXPECT_FALSE(BitwiseEqual(received(Weights::kSamples), weights));
}

// Which kernels of integers there are depends on what weights are multiples of.
TEST(ConstantsOfJobsTest, WeightsBesideIntegersKeepTheirValues) {
  const Tensor weights =
      Made([](int64_t i, int64_t j) { return 0.001 * static_cast<double>(i + 1) * static_cast<double>((7 * i + 31 * j) % 255 - 127); });
  EXPECT_FALSE(BitwiseEqual(Received(weights).first, weights));
  static const FaultBackend backend;
  const std::string text = "fn (%x: Tensor[(4, 500), uint8]) { (qnn.dequantize(%x, 0.5f, 3u8), meta[relay.Constant][0]) }";
  const Expr function = ParseExpr(text, Operators(), {.constants = {weights}}).value().expr;
  const nlohmann::json message = ToMessage(KernelJob{function, &backend, {"right", {}, {}}, Device{}, {}});
  EXPECT_TRUE(BitwiseEqual(PrintExpr(JobFromMessage(message)->function).constants.at(0), weights));
}

// Of weights little is sent, and what is made of it has their signs, size and spread: of variances, that they are positive.
TEST(ConstantsOfJobsTest, WeightsAreDrawnFromASampleOfThem) {
  Tensor uniform(kType);
  FillRandom(uniform, 1);
  // Most are small and a few are not, as in trained networks.
  const Tensor weights = Made([&](int64_t i, int64_t j) { return std::pow(uniform.Data<float>()[500 * i + j], 9) * 30; });
  const Tensor variances = Made([&](int64_t i, int64_t j) { return std::pow(uniform.Data<float>()[500 * i + j], 2) + 1e-7; });
  for (const Tensor& constant : {weights, variances}) {
    const auto [received, bytes] = Received(constant);
    EXPECT_LT(bytes, kType.ByteCount() / 4);
    EXPECT_FALSE(BitwiseEqual(received, constant));
    const auto magnitude = [](const Tensor& tensor) {
      double sum = 0;
      for (const float value : tensor.Values<float>()) sum += std::abs(value);
      return sum / static_cast<double>(tensor.ElementCount());
    };
    EXPECT_NEAR(magnitude(received) / magnitude(constant), 1, 0.05);
    const auto [least, most] = std::minmax_element(constant.Data<float>(), constant.Data<float>() + kElements);
    for (const float value : received.Values<float>()) EXPECT_TRUE(value >= *least && value <= *most);
  }
}

}  // namespace
}  // namespace collage
