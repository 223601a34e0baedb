// The suite's own eyes: a kernel that is wrong in one of these ways must not get past them.

#include "tests/conformance/kernel_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

namespace collage::conformance {
namespace {

constexpr int64_t kCount = 500;
const TensorType kType{{kCount}, DType::kFloat32};

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Copies its input, and then does something else to the output.
class SpoiledCopy : public Kernel {
 public:
  using Spoil = std::function<void(float* output, const float* input)>;
  explicit SpoiledCopy(Spoil spoil) : spoil_(std::move(spoil)) {
    inputs_.push_back({kType, Layout()});
    outputs_.push_back({kType, Layout()});
  }
  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void*) override {
    const auto* input = static_cast<const float*>(inputs[0]);
    std::copy(input, input + kCount, static_cast<float*>(outputs[0]));
    spoil_(static_cast<float*>(outputs[0]), input);
    return {};
  }

 private:
  Spoil spoil_;
};

std::string Check(
    const SpoiledCopy::Spoil& spoil, const std::function<void(Tensor&)>& change_expected = [](Tensor&) {}) {
  Tensor input(kType);
  FillRandom(input, 1);
  Tensor expected(kType);
  std::copy(input.Data<float>(), input.Data<float>() + kCount, expected.MutableData<float>());
  change_expected(expected);
  KernelRunner runner(std::make_unique<SpoiledCopy>(spoil), 1);
  return runner.Check({input}, {expected});
}

TEST(KernelCheckTest, RightKernelsPass) {
  EXPECT_EQ(Check([](float*, const float*) {}), "");
  EXPECT_EQ(Check([](float* output, const float*) { std::for_each(output, output + kCount, [](float& x) { x *= 1.00003f; }); }), "")
      << "rounding";
}

TEST(KernelCheckTest, ThreeTenThousandthsOfAllElementsAreWrong) {
  EXPECT_NE(Check([](float* output, const float*) { std::for_each(output, output + kCount, [](float& x) { x *= 1.0003f; }); }), "");
}

TEST(KernelCheckTest, OneElementIsEnough) {
  EXPECT_NE(Check([](float* output, const float*) { output[kCount - 3] += 3e-4f; }), "");
}

TEST(KernelCheckTest, NaNIsNotRight) {
  const auto fill = [](float* begin) { std::fill_n(begin, kCount, kNaN); };
  EXPECT_NE(Check([](float* output, const float*) { output[7] = kNaN; }), "");
  EXPECT_NE(Check([&](float* output, const float*) { fill(output); }, [&](Tensor& expected) { fill(expected.MutableData<float>()); }), "")
      << "nothing was compared";
}

TEST(KernelCheckTest, WritingElsewhereIsWrong) {
  EXPECT_NE(Check([](float* output, const float*) { output[kCount] = 0; }), "");
  EXPECT_NE(Check([](float*, const float* input) { const_cast<float*>(input)[0] = 5; }), "");
}

}  // namespace
}  // namespace collage::conformance
