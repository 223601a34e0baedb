// What the conformance suite cannot see: refusals and errors. What is accepted is tested there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "collage/backend/registry.h"
#include "collage/op/table.h"

namespace collage {
namespace {

using testing::HasSubstr;

class OnnxRuntimeTest : public testing::Test {
 protected:
  void SetUp() override {
    const Result<const Backend*> found = FindBackend("onnxruntime", Device{});
    if (!found) GTEST_SKIP() << found.error().message;
    backend_ = *found;
  }

  static Expr Call(const std::string& op, std::vector<Expr> args, Attributes attributes = {}) {
    return MakeCall(Operators().Find(op), std::move(args), std::move(attributes)).value();
  }

  [[nodiscard]] Verdict Ask(const Expr& call) const { return backend_->Rules().supports(call); }

  [[nodiscard]] std::unique_ptr<Kernel> Compile(const Expr& function) const {
    const Function& literal = *function->As<Function>();
    return backend_->Compile(literal, Device{}, backend_->Variants(literal, Device{}).at(0)).value();
  }

  const Backend* backend_ = nullptr;
};

Tensor ResultOf(Kernel& kernel, const Tensor& input) {
  Tensor output(kernel.outputs()[0].type);
  const std::vector<const void*> inputs = {input.Bytes()};
  const std::vector<void*> outputs = {output.MutableBytes()};
  EXPECT_TRUE(kernel.Run(inputs, outputs, nullptr));
  return output;
}

/// Each function of the table that is used stands where this library has it: the version, then a model through all of them.
TEST_F(OnnxRuntimeTest, TheTableIsThatOfTheLibrary) {
  EXPECT_THAT(backend_->Probe(Device{}).version, testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+.*"));
  const Expr x = MakeVar("x", TensorType{{3}, DType::kFloat32});
  const auto kernel = Compile(MakeFunction({x}, Call("nn.relu", {x})).value());
  const TensorType type{{3}, DType::kFloat32};
  for (const float sign : {1.0F, -1.0F}) {  // at other addresses, too
    const Tensor input = Tensor::FromVector(type, std::vector<float>{-sign, 0, 2 * sign});
    const Tensor expected =
        sign > 0 ? Tensor::FromVector(type, std::vector<float>{0, 0, 2}) : Tensor::FromVector(type, std::vector<float>{1, 0, 0});
    EXPECT_TRUE(BitwiseEqual(ResultOf(*kernel, input), expected));
  }
}

TEST_F(OnnxRuntimeTest, ComputesOnTheProcessorOnly) {
  Device cuda;
  cuda.kind = DeviceKind::kCuda;
  EXPECT_FALSE(backend_->Probe(cuda).present);
  EXPECT_FALSE(backend_->Probe(cuda).reason.empty());
}

TEST_F(OnnxRuntimeTest, RefusesWhatItHasNoKernelFor) {
  const auto of = [](DType dtype) { return MakeVar("x", TensorType{{4}, dtype}); };
  EXPECT_TRUE(Ask(Call("sin", {of(DType::kFloat32)})).accepted);
  EXPECT_THAT(Ask(Call("nn.relu", {of(DType::kFloat16)})).reason, HasSubstr("float16"));
  EXPECT_FALSE(Ask(of(DType::kFloat32)).accepted);
  EXPECT_THAT(Ask(Call("nn.relu", {MakeVar("x", TensorType{{0, 4}, DType::kFloat32})})).reason, HasSubstr("without elements"));
}

TEST_F(OnnxRuntimeTest, UnknownVariantsAreErrors) {
  const Expr x = MakeVar("x", TensorType{{4}, DType::kFloat32});
  const Expr function = MakeFunction({x}, Call("nn.relu", {x})).value();
  const auto kernel = backend_->Compile(*function->As<Function>(), Device{}, Variant{"winograd", {Layout()}, {Layout()}});
  ASSERT_FALSE(kernel);
  EXPECT_THAT(kernel.error().message, HasSubstr("winograd"));
}

TEST_F(OnnxRuntimeTest, TwinsRunAtTheSameTime) {
  const TensorType type{{64, 64}, DType::kFloat32};
  const Expr x = MakeVar("x", type);
  Tensor weight(type);
  FillRandom(weight, 1);
  const auto kernel = Compile(MakeFunction({x}, Call("nn.matmul", {x, MakeConstant(weight)})).value());
  const auto twin = kernel->Twin();
  ASSERT_NE(twin, nullptr);
  std::vector<Tensor> inputs = {Tensor(type), Tensor(type)};
  FillRandom(inputs[0], 2);
  FillRandom(inputs[1], 3);
  const Tensor first = ResultOf(*kernel, inputs[0]);
  const Tensor second = ResultOf(*kernel, inputs[1]);
  const auto repeat = [&](Kernel& one, const Tensor& input, const Tensor& expected) {
    for (int run = 0; run < 200; ++run) EXPECT_TRUE(BitwiseEqual(ResultOf(one, input), expected));
  };
  std::thread other([&] { repeat(*twin, inputs[1], second); });
  repeat(*kernel, inputs[0], first);
  other.join();
}

}  // namespace
}  // namespace collage
