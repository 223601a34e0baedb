// What the conformance suite cannot see: refusals and errors, and the precision of large sums. What is accepted is tested there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/backend/registry.h"
#include "collage/ir/permitted_precision.h"
#include "collage/op/integer_weights.h"
#include "collage/op/table.h"
#include "tests/backend/kernel_harness.h"

namespace collage {
namespace {

using namespace testing_backend;  // NOLINT(google-build-using-namespace)
using testing::HasSubstr;

const Backend& OpenVino() {
  static const Backend* backend = FindBackend("openvino", Device{}).value();
  return *backend;
}

Expr Call(const std::string& op, std::vector<Expr> args, Attributes attributes = {}) {
  return MakeCall(Operators().Find(op), std::move(args), std::move(attributes)).value();
}

Verdict Ask(const Expr& call) { return OpenVino().Rules().supports(call); }

TEST(OpenVinoTest, ComputesOnTheProcessorOnly) {
  Device cuda;
  cuda.kind = DeviceKind::kCuda;
  EXPECT_FALSE(OpenVino().Probe(cuda).present);
  EXPECT_FALSE(OpenVino().Probe(cuda).reason.empty());
}

TEST(OpenVinoTest, RefusesTypesThatItWouldComputeInAnother) {
  for (const DType dtype : {DType::kInt64, DType::kInt32, DType::kFloat64}) {
    const Expr x = MakeVar("x", TensorType{{4}, dtype});
    EXPECT_THAT(Ask(Call("add", {x, x})).reason, HasSubstr(std::string(Name(dtype))));
  }
  const Expr table = MakeVar("table", TensorType{{9, 4}, DType::kFloat32});
  const Expr rows = MakeVar("rows", TensorType{{3}, DType::kInt64});
  EXPECT_TRUE(Ask(Call("take", {table, rows}, {{"axis", int64_t{0}}})).accepted) << "64-bit indices";
}

TEST(OpenVinoTest, RefusesWhatIsNoCallAndTensorsWithoutElements) {
  const Expr x = MakeVar("x", TensorType{{0, 4}, DType::kFloat32});
  EXPECT_FALSE(Ask(x).accepted);
  EXPECT_THAT(Ask(Call("nn.relu", {x})).reason, HasSubstr("without elements"));
}

TEST(OpenVinoTest, FunctionsWithRefusedCallsHaveNoVariant) {
  const Expr x = MakeVar("x", TensorType{{4}, DType::kFloat64});
  const Expr function = MakeFunction({x}, Call("nn.relu", {x})).value();
  EXPECT_TRUE(OpenVino().Variants(*function->As<Function>(), Device{}).empty());
  EXPECT_FALSE(OpenVino().Compile(*function->As<Function>(), Device{}, Variant{"rewritten", {Layout()}, {Layout()}}));
}

/// A function that carries a model of which this is what was read.
Expr Carrier(const Expr& x, const Expr& body) {
  const Expr literal = MakeFunction({x}, body, {{"OnnxModel", std::string("its text")}}).value();
  const Expr outer = Input(x->type().AsTensor()->shape);
  return FunctionOf({outer}, MakeCall(literal, {outer}).value());
}

TEST(OpenVinoTest, AModelAsItCameIsRefusedWhereItMakesFloat8) {
  const Expr x = Input({4});
  const auto variants = [](const Expr& function) { return OpenVino().Variants(*function->As<Function>(), Cpu(1)); };
  const std::vector<Variant> usual = variants(Carrier(x, CallOp("exp", {x})));
  ASSERT_EQ(usual.size(), 1);
  EXPECT_EQ(usual[0].name, "original");
  for (const char* type : {"float8_e4m3fn", "float8_e5m2"}) {
    const Expr there = CallOp("cast", {x}, {{"dtype", std::string(type)}});
    EXPECT_TRUE(variants(Carrier(x, CallOp("cast", {there}, {{"dtype", std::string("float32")}}))).empty()) << type;
  }
}

TEST(OpenVinoTest, UnknownVariantsAreErrors) {
  const Expr x = MakeVar("x", TensorType{{4}, DType::kFloat32});
  const Expr function = MakeFunction({x}, Call("nn.relu", {x})).value();
  const auto kernel = OpenVino().Compile(*function->As<Function>(), Device{}, Variant{"winograd", {Layout()}, {Layout()}});
  ASSERT_FALSE(kernel);
  EXPECT_THAT(kernel.error().message, HasSubstr("winograd"));
}

/// bfloat16, the plugin's default where the processor has it, keeps 8 bits: 1 + 1/512 would round to 1.
TEST(OpenVinoTest, ComputesInFloat32) {
  const Expr x = MakeVar("x", TensorType{{64, 64}, DType::kFloat32});
  Tensor identity(TensorType{{64, 64}, DType::kFloat32});
  for (int64_t i = 0; i < 64; ++i) identity.MutableData<float>()[i * 65] = 1.0F;
  const Expr function = MakeFunction({x}, Call("nn.matmul", {x, MakeConstant(identity)})).value();
  const Function& product = *function->As<Function>();
  auto kernel = OpenVino().Compile(product, Device{}, OpenVino().Variants(product, Device{}).at(0)).value();
  Tensor input(TensorType{{64, 64}, DType::kFloat32});
  for (int64_t i = 0; i < input.ElementCount(); ++i) input.MutableData<float>()[i] = 1.0F + 1.0F / 512;
  Tensor output(input.type());
  const std::vector<const void*> inputs = {input.Bytes()};
  const std::vector<void*> outputs = {output.MutableBytes()};
  ASSERT_TRUE(kernel->Run(inputs, outputs, nullptr));
  EXPECT_TRUE(BitwiseEqual(output, input));
}

/// Data of a product with rounded weights stay float32: it is as near to the product of these as any of float32.
TEST(OpenVinoTest, RoundsWeightsAndNothingElseWhereThatIsPermitted) {
  const Expr x = Input({2, 256});
  const Expr function = FunctionOf({x}, CallOp("nn.relu", {CallOp("nn.dense", {x, RandomConstant({320, 256}, 3)})}));
  for (const Variant& variant : OpenVino().Variants(*function->As<Function>(), Cpu(2))) EXPECT_FALSE(variant.uses_precision);
  const Expr permitted = WithPrecision(function, *Precision::Parse("int8-weights"));
  const Expr rounded = *WithRoundedWeights(*permitted->As<Function>());
  const std::vector<Tensor> inputs = RandomInputs(function);
  for (const Expr& one : {permitted, rounded}) {
    const std::vector<Variant> variants = OpenVino().Variants(*one->As<Function>(), Cpu(2));
    ASSERT_EQ(variants.size(), 2U);
    EXPECT_EQ(variants[1].name, "rewritten/int8-weights");
    EXPECT_TRUE(variants[1].uses_precision);
    const Tensor found = Compiled(OpenVino(), one, variants[1], 2)(inputs);
    EXPECT_EQ(Objection(Compare(found, Reference(rounded, inputs))), "");
    EXPECT_NE(Objection(Compare(found, Reference(function, inputs))), "");
  }
  EXPECT_FALSE(OpenVino().Compile(*function->As<Function>(), Cpu(2), OpenVino().Variants(*permitted->As<Function>(), Cpu(2)).at(1)));
  const Expr product = FunctionOf({x}, CallOp("nn.relu", {x}));
  const Expr without_weights = WithPrecision(product, *Precision::Parse("int8-weights"));
  EXPECT_EQ(OpenVino().Variants(*without_weights->As<Function>(), Cpu(2)).size(), 1U);
}

}  // namespace
}  // namespace collage
