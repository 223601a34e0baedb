// Generated code on tensors of each type, against the reference.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "collage/tensor/float16.h"
#include "tests/backend/device_harness.h"
#include "tests/backend/generated_functions.h"
#include "tests/backend/opencl/opencl_test.h"

namespace collage {
namespace {

using testing_backend::CallOp;
using testing_backend::FunctionOf;

class OpenClTypesTest : public testing_backend::OpenClTest {
 protected:
  static Expr Cast(DType from, DType to, int64_t elements) {
    const Expr x = MakeVar("x", TensorType{{elements}, from});
    return FunctionOf({x}, CallOp("cast", {x}, {{"dtype", std::string(Name(to))}}));
  }

  /// Bit for bit, but that NaN is any.
  void ExpectCastAsTheReferenceDoes(const Tensor& values, DType to) const {
    SCOPED_TRACE(std::string(Name(values.dtype())) + " to " + std::string(Name(to)));
    const Expr function = Cast(values.dtype(), to, values.ElementCount());
    const std::unique_ptr<Kernel> kernel = Compiled(function, kBuffer);
    ASSERT_TRUE(kernel);
    const Tensor found = testing_backend::RunOnDevice(*kernel, {values});
    const Tensor expected = testing_backend::Reference(function, {values});
    const std::vector<double> found_values = found.ToDouble();
    const std::vector<double> expected_values = expected.ToDouble();
    const size_t size = ByteSize(to);
    for (size_t i = 0; i < expected_values.size(); ++i) {
      const bool is_same = std::memcmp(found.Bytes() + i * size, expected.Bytes() + i * size, size) == 0;
      EXPECT_TRUE(is_same || (std::isnan(found_values[i]) && std::isnan(expected_values[i])))
          << values.ToDouble()[i] << " became " << found_values[i] << " instead of " << expected_values[i];
    }
  }
};

TEST_F(OpenClTypesTest, EveryVariantComputesWhatTheReferenceDoes) {
  for (const auto& [name, function] : testing_backend::GeneratedFunctions()) {
    SCOPED_TRACE(name);
    ExpectAgreement(function);
  }
}

TEST_F(OpenClTypesTest, EveryNumberOf16BitsIsRead) {
  constexpr int64_t kCount = 1 << 16;
  for (const DType from : {DType::kFloat16, DType::kBFloat16}) {
    Tensor all(TensorType{{kCount}, from});
    for (int64_t i = 0; i < kCount; ++i) all.MutableData<uint16_t>()[i] = static_cast<uint16_t>(i);
    for (const DType to : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt32, DType::kInt64, DType::kBool})
      ExpectCastAsTheReferenceDoes(all, to);
  }
}

TEST_F(OpenClTypesTest, NumbersAreRoundedToTheNearestAndTiesToEven) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0,        -0.0f,     kInfinity, -kInfinity, std::nanf(""), 3e38f,     std::numeric_limits<float>::max(),
                               65504.0f, 65519.99f, 65520.0f,  -65520.0f,  1e30f,         -1e30f,    2147483520.0f,
                               0x1p31f,  -0x1p31f,  0x1p63f,   -0x1p63f,   0.5f,          -0.99999f, 1e-40f};
  // The middle between each two neighbours of 16 bits, and what lies just beside it.
  for (const auto from : {FromFloat16, FromBFloat16}) {
    for (int bits = 0; bits < (1 << 16); bits += 37) {
      const float low = from(static_cast<uint16_t>(bits));
      const float high = from(static_cast<uint16_t>(bits + 1));
      if (!std::isfinite(low) || !std::isfinite(high)) continue;
      const auto middle = static_cast<float>((static_cast<double>(low) + static_cast<double>(high)) / 2);
      for (const float value : {middle, std::nextafter(middle, kInfinity), std::nextafter(middle, -kInfinity)}) values.push_back(value);
    }
  }
  Tensor tensor(TensorType{{static_cast<int64_t>(values.size())}});
  std::copy(values.begin(), values.end(), tensor.MutableData<float>());
  for (const DType to : {DType::kFloat16, DType::kBFloat16, DType::kInt32, DType::kInt64, DType::kBool})
    ExpectCastAsTheReferenceDoes(tensor, to);
}

TEST_F(OpenClTypesTest, IntegersBecomeTheNearestNumber) {
  const std::vector<int64_t> values = {0,    1,    -1,     2047,     2049,     2051,      -2051,
                                       4098, 4102, 257,    65519,    65520,    70000,     16777217,
                                       -7,   1000, -70000, 16777219, 33554435, 123456789, std::numeric_limits<int32_t>::min()};
  const Shape shape = {static_cast<int64_t>(values.size())};
  Tensor wide(TensorType{shape, DType::kInt64});
  Tensor narrow(TensorType{shape, DType::kInt32});
  std::copy(values.begin(), values.end(), wide.MutableData<int64_t>());
  std::transform(values.begin(), values.end(), narrow.MutableData<int32_t>(), [](int64_t value) { return static_cast<int32_t>(value); });
  for (const DType to : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt32, DType::kInt64, DType::kBool}) {
    ExpectCastAsTheReferenceDoes(wide, to);
    ExpectCastAsTheReferenceDoes(narrow, to);
  }
}

/// A tensor between two kernels has two bytes an element, too.
TEST_F(OpenClTypesTest, ASavedKernelOfFloat16ComputesTheSame) {
  const Expr x = testing_backend::Input({4, 16});
  const Expr hidden = CallOp("nn.relu", {CallOp("nn.dense", {x, testing_backend::RandomConstant({32, 16}, 7)})});
  const Expr whole = FunctionOf({x}, CallOp("nn.softmax", {hidden}));
  const Expr function = InType(*whole->As<Function>(), DType::kFloat16);
  const std::unique_ptr<Kernel> kernel = Compiled(function, kBuffer);
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->workspace_bytes(), 4u * 32u * sizeof(uint16_t));
  const Result<std::unique_ptr<Kernel>> loaded = backend_->Load(kernel->Serialize(), device_);
  ASSERT_TRUE(loaded) << loaded.error().message;
  const std::vector<Tensor> inputs = testing_backend::RandomInputs(function);
  EXPECT_TRUE(BitwiseEqual(testing_backend::RunOnDevice(**loaded, inputs), testing_backend::RunOnDevice(*kernel, inputs)));
  ExpectAgreementOf(**loaded, function, 3);
}

/// Textures are of floats.
TEST_F(OpenClTypesTest, ConstantsOfOtherTypesLieInBuffers) {
  const Expr x = testing_backend::Input({3, 64});
  const Expr whole = FunctionOf({x}, CallOp("nn.dense", {x, testing_backend::RandomConstant({8, 64}, 8)}));
  const Expr function = InType(*whole->As<Function>(), DType::kFloat16);
  EXPECT_EQ(NamesOf(function), std::vector<std::string>{kBuffer});
}

TEST_F(OpenClTypesTest, TypesWithoutCodeAreNamed) {
  const auto reason = [this](const char* op, DType dtype) {
    return backend_->Rules().supports(CallOp(op, {MakeVar("x", TensorType{{2, 3}, dtype})})).reason;
  };
  EXPECT_EQ(reason("transpose", DType::kFloat64), "opencl: tensors of float64");
  EXPECT_EQ(reason("abs", DType::kInt32), "opencl: no code for abs of int32");
  EXPECT_EQ(reason("transpose", DType::kInt32), "");
  EXPECT_EQ(reason("nn.softmax", DType::kBFloat16), "");
}

}  // namespace
}  // namespace collage
