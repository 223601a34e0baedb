#include "collage/measure/verification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "collage/ir/parse.h"
#include "collage/measure/kernel_buffers.h"
#include "collage/op/table.h"
#include "collage/tensor/float16.h"

namespace collage {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A kernel that is given as what it does with its one input and its one output, both of one type.
class UnaryKernel : public Kernel {
 public:
  using Compute = std::function<void(const Tensor& input, Tensor& output)>;
  UnaryKernel(const TensorType& type, Compute compute) : compute_(std::move(compute)) {
    inputs_.push_back({type, Layout()});
    outputs_.push_back({type, Layout()});
  }
  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void*) override {
    const TensorType& type = inputs_[0].type;
    const Tensor input = Tensor::View(type, inputs[0], nullptr);
    Tensor output(type);
    std::memcpy(output.MutableBytes(), outputs[0], output.ByteCount());
    compute_(input, output);
    std::memcpy(outputs[0], output.Bytes(), output.ByteCount());
    return {};
  }

 private:
  Compute compute_;
};

constexpr int64_t kCount = 1000;

Expr FunctionOf(const std::string& body, DType dtype = DType::kFloat32) {
  const std::string type = ToString(TensorType{{kCount}, dtype});
  return ParseExpr("fn (%x: " + type + ") { " + body + " }", Operators()).value().expr;
}

UnaryKernel KernelOf(const std::function<float(float x, int64_t i)>& compute) {
  return UnaryKernel({{kCount}, DType::kFloat32}, [compute](const Tensor& input, Tensor& output) {
    for (int64_t i = 0; i < kCount; ++i) output.MutableData<float>()[i] = compute(input.Data<float>()[i], i);
  });
}

bool Passes(Kernel& kernel, const Expr& function) {
  const ReferenceSample sample = SampleReference(function, 1).value();
  return Passes(CompareWithReference(kernel, sample).value(), sample.tolerance);
}

TEST(CompareWithReferenceTest, LogarithmsAreComparedAsNumbers) {
  const Expr function = FunctionOf("log(%x)");
  UnaryKernel right = KernelOf([](float x, int64_t) { return std::log(x); });
  UnaryKernel wrong = KernelOf([](float x, int64_t) { return std::log(x) + 3e-3f; });
  // Right wherever the reference would be NaN, had the inputs both signs.
  UnaryKernel nothing = KernelOf([](float, int64_t) { return std::numeric_limits<float>::quiet_NaN(); });
  EXPECT_TRUE(Passes(right, function));
  EXPECT_FALSE(Passes(wrong, function));
  EXPECT_FALSE(Passes(nothing, function));
}

TEST(CompareWithReferenceTest, ALittleInAllAndALittleInOneAreTooMuch) {
  const Expr function = FunctionOf("exp(%x)");
  UnaryKernel right = KernelOf([](float x, int64_t) { return std::exp(x); });
  UnaryKernel all = KernelOf([](float x, int64_t) { return std::exp(x) * 1.0003f; });
  UnaryKernel one = KernelOf([](float x, int64_t i) { return std::exp(x) + (i == 513 ? 3e-3f : 0.0f); });
  EXPECT_TRUE(Passes(right, function));
  EXPECT_FALSE(Passes(all, function));
  EXPECT_FALSE(Passes(one, function));
}

TEST(CompareWithReferenceTest, WhatIsNotWrittenIsNotAgreedOn) {
  UnaryKernel lazy({{kCount}, DType::kFloat32}, [](const Tensor&, Tensor&) {});
  EXPECT_FALSE(Passes(lazy, FunctionOf("multiply(%x, 0f)")));
}

TEST(CompareWithReferenceTest, NothingFiniteIsNoPass) {
  const Expr function = FunctionOf("log(subtract(-1f, abs(%x)))");
  UnaryKernel same = KernelOf([](float x, int64_t) { return std::log(-1 - std::abs(x)); });
  EXPECT_FALSE(Passes(same, function));
  EXPECT_THAT(DifferenceFromReference(same, function, 1).error().message, HasSubstr("could not be compared"));
}

TEST(CompareWithReferenceTest, TypesOf16BitsAreCompared) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const std::string name(Name(dtype));
    const Expr function = FunctionOf("cast(exp(cast(%x, dtype=\"float32\")), dtype=\"" + name + "\")", dtype);
    const auto kernel = [dtype](double factor) {
      return UnaryKernel({{kCount}, dtype}, [=](const Tensor& input, Tensor& output) {
        const std::vector<double> values = input.ToDouble();
        for (size_t i = 0; i < values.size(); ++i) {
          const auto value = static_cast<float>(std::exp(values[i]) * factor);
          output.MutableData<uint16_t>()[i] = dtype == DType::kFloat16 ? ToFloat16(value) : ToBFloat16(value);
        }
      });
    };
    UnaryKernel right = kernel(1);
    UnaryKernel almost = kernel(1 + 5e-5);  // some are rounded to the other neighbour
    UnaryKernel wrong = kernel(1.03);
    EXPECT_TRUE(Passes(right, function)) << name;
    EXPECT_TRUE(Passes(almost, function)) << name;
    EXPECT_FALSE(Passes(wrong, function)) << name;
    EXPECT_LE(DifferenceFromReference(almost, function, 1).value(), kTolerance) << name;
    EXPECT_GT(DifferenceFromReference(wrong, function, 1).value(), kTolerance) << name;
  }
}

// What is left of the difference of two nearly equal numbers is mostly their rounding, so a right kernel is far from the reference.
TEST(DifferenceFromReferenceTest, WhatAmplifiesRoundingMayDifferByWhatThatDoes) {
  const Expr function = FunctionOf("subtract(exp(add(%x, 1e-6f)), exp(%x))");
  const auto kernel = [](double factor) {
    return KernelOf([=](float x, int64_t) {
      return static_cast<float>(factor * (static_cast<float>(std::exp(static_cast<double>(x) + 1e-6)) - std::exp(static_cast<double>(x))));
    });
  };
  UnaryKernel right = kernel(1);
  UnaryKernel wrong = kernel(-3);
  EXPECT_FALSE(Passes(right, function));
  EXPECT_LE(DifferenceFromReference(right, function, 1).value(), kTolerance);
  EXPECT_GT(DifferenceFromReference(wrong, function, 1).value(), kTolerance);
}

TEST(DifferenceFromReferenceTest, SaysWhatItRuns) {
  const Expr function = FunctionOf("subtract(exp(add(%x, 1e-6f)), exp(%x))");
  UnaryKernel wrong = KernelOf([](float, int64_t) { return 1.0F; });
  std::vector<std::string> stages;
  EXPECT_GT(DifferenceFromReference(wrong, function, 1, [&](const char* stage) { stages.emplace_back(stage); }).value(), kTolerance);
  const std::vector<std::string> begin(stages.begin(), stages.begin() + 3);
  EXPECT_THAT(begin, ElementsAre("running the reference", "running", "running the reference with rounding"));
  EXPECT_EQ(stages.size(), 2U + 19U);
}

TEST(DifferenceFromReferenceTest, AnOperatorAloneIsNotExcused) {
  UnaryKernel wrong = KernelOf([](float x, int64_t i) { return std::exp(x) + (i == 513 ? 5e-4F : 0.0F); });
  const double difference = DifferenceFromReference(wrong, FunctionOf("exp(%x)"), 1).value();
  EXPECT_GT(difference, kTolerance);
  EXPECT_DOUBLE_EQ(DifferenceFromReference(wrong, FunctionOf("reshape(exp(%x), newshape=[1000])"), 1).value(), difference);
}

// What quantises may round either way where it stands between two steps; whatever is a step further is wrong.
TEST(CompareWithReferenceTest, QuantisedResultsMayBeOneStepOff) {
  const std::string quantised = "qnn.quantize(exp(%x), 0.02f, -3i8)";
  const auto off = [](int64_t steps, int64_t divisor = 7) {
    return [=](const ReferenceSample& sample) {
      Tensor result(sample.expected[0].type());
      std::memcpy(result.MutableBytes(), sample.expected[0].Bytes(), result.ByteCount());
      for (int64_t i = 0; i < result.ElementCount(); i += divisor) {
        if (result.dtype() == DType::kInt8) result.MutableData<int8_t>()[i] = static_cast<int8_t>(result.Data<int8_t>()[i] - steps);
        if (result.dtype() == DType::kFloat32) result.MutableData<float>()[i] -= 0.02F * static_cast<float>(steps);
      }
      return Passes(CompareWithReference([&](auto) { return std::vector<Tensor>{result}; }, sample).value(), sample.tolerance);
    };
  };
  for (const std::string& body : {quantised, "qnn.dequantize(" + quantised + ", 0.02f, -3i8)"}) {
    const ReferenceSample sample = SampleReference(FunctionOf(body), 1).value();
    EXPECT_TRUE(off(1)(sample)) << body;
    EXPECT_FALSE(off(2)(sample)) << body;
  }
  const ReferenceSample exact = SampleReference(FunctionOf("abs(%x)", DType::kInt8), 1).value();
  EXPECT_FALSE(off(1)(exact)) << "integers that nothing quantises";
}

TEST(CompareWithReferenceTest, APlanIsComparedLikeAKernel) {
  const ReferenceSample sample = SampleReference(FunctionOf("log(%x)"), 1).value();
  const auto run = [&](float error) {
    return [&sample, error](std::span<const Tensor>) -> Result<std::vector<Tensor>> {
      Tensor output(sample.expected[0].type());
      for (int64_t i = 0; i < kCount; ++i) output.MutableData<float>()[i] = sample.expected[0].Data<float>()[i] * (1 + error);
      return std::vector<Tensor>{output};
    };
  };
  EXPECT_TRUE(Passes(CompareWithReference(run(0), sample).value()));
  EXPECT_FALSE(Passes(CompareWithReference(run(3e-4f), sample).value()));
  EXPECT_FALSE(Passes(CompareWithReference([](auto) { return std::vector<Tensor>(); }, sample).value()));
}

TEST(CompareWithReferenceTest, AKernelOfAnotherTypeIsAnError) {
  UnaryKernel other({{kCount + 1}, DType::kFloat32}, [](const Tensor&, Tensor&) {});
  const ReferenceSample sample = SampleReference(FunctionOf("exp(%x)"), 1).value();
  EXPECT_EQ(CompareWithReference(other, sample).error().message,
            "takes Tensor[(1001,), float32] as input 0, expected Tensor[(1000,), float32]");
}

// What is timed is what is compared: numbers, in the kernel's own layout.
TEST(KernelBuffersTest, AreTimedOnTheInputsGiven) {
  const std::vector<Tensor> inputs = SuitableInputs(FunctionOf("log(%x)"), 1).value();
  std::vector<double> seen;
  UnaryKernel kernel({{kCount}, DType::kFloat32}, [&](const Tensor& input, Tensor&) { seen = input.ToDouble(); });
  ASSERT_TRUE(KernelBuffers(kernel, inputs).Run(kernel));
  EXPECT_EQ(seen, inputs[0].ToDouble());
  EXPECT_THAT(seen, Each(testing::Gt(0)));
}

}  // namespace
}  // namespace collage
