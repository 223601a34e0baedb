// A comparison must be able to fail: each test names one way in which a difference could hide.

#include "collage/tensor/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "collage/tensor/float16.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Tensor Floats(const std::vector<float>& values) {
  return Tensor::FromVector<float>({{static_cast<int64_t>(values.size())}, DType::kFloat32}, values);
}

Tensor Halves(const std::vector<float>& values, DType dtype) {
  Tensor tensor(TensorType{{static_cast<int64_t>(values.size())}, dtype});
  for (size_t i = 0; i < values.size(); ++i)
    tensor.MutableData<uint16_t>()[i] = dtype == DType::kFloat16 ? ToFloat16(values[i]) : ToBFloat16(values[i]);
  return tensor;
}

bool Passes(const std::vector<float>& found, const std::vector<float>& expected) {
  return Passes(Compare(Floats(found), Floats(expected)));
}

TEST(AgreementTest, IsRelativeToTheLargestFiniteValue) {
  EXPECT_NEAR(Compare(Floats({1, 9}), Floats({2, 10})).difference, 0.1, 1e-12);
  EXPECT_NEAR(Compare(Floats({1, kInfinity}), Floats({2, kInfinity})).difference, 0.5, 1e-12);
  EXPECT_NEAR(Compare(Floats({0.25}), Floats({0})).difference, 0.25, 1e-12);
}

// Neither looser nor tighter: 3e-4 of the largest value is wrong, half a ten thousandth is rounding.
TEST(AgreementTest, TheToleranceIsATenThousandth) {
  EXPECT_TRUE(Passes({1.00005f, 5}, {1, 5}));
  EXPECT_TRUE(Passes({10, 1.0004f}, {10, 1}));
  EXPECT_FALSE(Passes({1.0003f}, {1}));
  EXPECT_FALSE(Passes({10, 1.003f}, {10, 1}));
}

Tensor Bytes(const std::vector<int8_t>& values) {
  return Tensor::FromVector<int8_t>({{static_cast<int64_t>(values.size())}, DType::kInt8}, values);
}

// A value in the middle between two quantised ones may become either: one step is rounding, two are not.
TEST(AgreementTest, OneStepOfQuantisedValuesExplainsItself) {
  EXPECT_TRUE(Passes(Compare(Bytes({1, -128, 127}), Bytes({2, -127, 126}), 1)));
  EXPECT_FALSE(Passes(Compare(Bytes({1, 5}), Bytes({1, 3}), 1)));
  EXPECT_FALSE(Passes(Compare(Bytes({1}), Bytes({2}))));
  EXPECT_TRUE(Passes(Compare(Floats({1.1F, 2}), Floats({1, 2}), 0.1)));
  EXPECT_FALSE(Passes(Compare(Floats({1.2F, 2}), Floats({1, 2}), 0.1)));
  const std::vector<Tensor> found = {Bytes({1}), Floats({3})};
  const std::vector<Tensor> expected = {Bytes({2}), Floats({3.1F})};
  EXPECT_TRUE(Passes(Compare(found, expected, std::vector<double>{1, 0.1})));
  EXPECT_FALSE(Passes(Compare(found, expected, std::vector<double>{1})));
}

TEST(AgreementTest, OneElementOfManyIsEnough) {
  std::vector<float> expected(100000, 0.5f);
  std::vector<float> found = expected;
  EXPECT_TRUE(Passes(found, expected));
  found[77777] += 3e-4f;
  EXPECT_FALSE(Passes(found, expected));
}

TEST(AgreementTest, OnlyNumbersAreCompared) {
  EXPECT_FALSE(Passes({kNaN}, {kNaN})) << "nothing was compared";
  EXPECT_FALSE(Passes({kInfinity, kNaN}, {kInfinity, kNaN})) << "nothing was compared";
  EXPECT_TRUE(Passes({1, kNaN, -kInfinity}, {1, kNaN, -kInfinity}));
  const Agreement agreement = Compare(Floats({1, kNaN, 2}), Floats({1, kNaN, 2}));
  EXPECT_EQ(agreement.finite, 2);
  EXPECT_EQ(agreement.elements, 3);
}

TEST(AgreementTest, KindsDoNotMix) {
  EXPECT_FALSE(Passes({1, kNaN}, {1, 1}));
  EXPECT_FALSE(Passes({1, 1}, {1, kNaN}));
  EXPECT_FALSE(Passes({1, kInfinity}, {1, 1}));
  EXPECT_FALSE(Passes({1, 1}, {1, kInfinity}));
  EXPECT_FALSE(Passes({1, kNaN}, {1, kInfinity}));
  EXPECT_FALSE(Passes({1, kInfinity}, {1, kNaN}));
  EXPECT_FALSE(Passes({1, kInfinity}, {1, -kInfinity}));
  EXPECT_EQ(Compare(Floats({kNaN, kNaN, 3}), Floats({1, kInfinity, 3})).unequal, 2);
}

TEST(AgreementTest, EveryTensorMustHaveBeenCompared) {
  const std::vector<Tensor> expected = {Floats({1, 2}), Floats({kNaN})};
  const Agreement agreement = Compare(expected, expected);
  EXPECT_FALSE(IsComparison(agreement));
  EXPECT_FALSE(Passes(agreement));
  EXPECT_THAT(Objection(agreement), HasSubstr("could not be compared"));
  const std::vector<Tensor> with_nothing = {Floats({1, 2}), Floats({})};
  EXPECT_TRUE(Passes(Compare(with_nothing, with_nothing))) << "nothing to compare is nothing to differ in";
}

TEST(AgreementTest, TensorsOfOtherTypesOrNumbersAreUnequal) {
  const Tensor one = Floats({1});
  EXPECT_FALSE(Passes(Compare(one.Reshaped({1, 1}), one)));
  EXPECT_FALSE(Passes(Compare(Tensor::Scalar(1.0, DType::kFloat64), Tensor::Scalar(1.0, DType::kFloat32))));
  EXPECT_FALSE(Passes(Compare(std::vector<Tensor>{one}, std::vector<Tensor>{one, one})));
  EXPECT_FALSE(Passes(Compare(std::vector<Tensor>{one, one}, std::vector<Tensor>{one})));
}

TEST(AgreementTest, IntegersAndBooleansAreExact) {
  const TensorType type{{2}, DType::kInt64};
  // As doubles these two are the same.
  const Tensor large = Tensor::FromVector<int64_t>(type, {(int64_t{1} << 53) + 1, 5});
  const Tensor near = Tensor::FromVector<int64_t>(type, {int64_t{1} << 53, 5});
  EXPECT_TRUE(Passes(Compare(large, large)));
  EXPECT_FALSE(Passes(Compare(near, large)));
  Tensor truth(TensorType{{2}, DType::kBool});
  Tensor odd(TensorType{{2}, DType::kBool});
  truth.MutableBytes()[0] = std::byte{1};
  odd.MutableBytes()[0] = std::byte{2};
  EXPECT_TRUE(Passes(Compare(truth, truth)));
  EXPECT_FALSE(Passes(Compare(odd, truth))) << "a boolean is 0 or 1";
}

// A value may be rounded to either of two neighbours, and no further.
TEST(AgreementTest, TypesOf16BitsMayBeRoundedEitherWay) {
  for (const auto& [dtype, unit] : {std::pair(DType::kFloat16, 0x1p-10f), std::pair(DType::kBFloat16, 0x1p-7f)}) {
    const Tensor expected = Halves({1, 0.5f}, dtype);
    EXPECT_TRUE(Passes(Compare(Halves({1 + unit, 0.5f}, dtype), expected), Tolerance(dtype))) << Name(dtype);
    EXPECT_FALSE(Passes(Compare(Halves({1 + 2 * unit, 0.5f}, dtype), expected), Tolerance(dtype))) << Name(dtype);
    EXPECT_FALSE(Passes(Compare(Halves({kNaN, 0.5f}, dtype), expected), Tolerance(dtype))) << Name(dtype);
    EXPECT_FALSE(Passes(Compare(Halves({1, kInfinity}, dtype), expected), Tolerance(dtype))) << Name(dtype);
  }
}

TEST(AgreementTest, ObjectionsSayWhat) {
  EXPECT_EQ(Objection(Compare(Floats({1}), Floats({1}))), "");
  EXPECT_EQ(Objection(Compare(Floats({1.5f}), Floats({1}))), "differs from the reference by 5.0e-01 of the largest value");
  EXPECT_EQ(Objection(Compare(Floats({1, kNaN}), Floats({1, 2}))), "1 of 2 elements are not what the reference gives");
}

TEST(FillRandomTest, KnowsTypesOf16Bits) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    Tensor tensor(TensorType{{1000}, dtype});
    Tensor wide(TensorType{{1000}, DType::kFloat64});
    FillRandom(tensor, 3, 2, 4);
    FillRandom(wide, 3, 2, 4);
    const std::vector<double> values = tensor.ToDouble();
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], wide.Data<double>()[i], 0x1p-7) << Name(dtype);
  }
}

}  // namespace
}  // namespace collage
