// Regions of several composites as one kernel, around a backend that compiles one composite at a time.

#include "collage/backend/merged_regions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <random>

#include "collage/backend/registered.h"
#include "collage/ir/op_sequence.h"
#include "collage/lower/save.h"
#include "collage/op/table.h"
#include "tests/lower/interpreter_backend.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

constexpr Device kCpu{};

/// Takes a function of one operator; what computes much it likes best in blocked layout, all else row-major.
class OneAtATime : public InterpreterBackend {
 public:
  OneAtATime() : InterpreterBackend("library", false) {}
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& device) const override {
    const Result<OpSequence> sequence = ToOpSequence(function);
    if (!sequence || sequence->steps.size() != 1 || sequence->steps[0].op->name == "exp") return {};
    std::vector<Variant> variants = InterpreterBackend::Variants(function, device);
    if (sequence->steps[0].op->kind == OpKind::kOutElementwiseFusable) std::swap(variants[0], variants[2]);
    return variants;
  }
};

Expr CallOf(const std::string& op, std::vector<Expr> args, Attributes attributes = {}) {
  return *MakeCall(Operators().Find(op), std::move(args), std::move(attributes));
}

/// The call of an operator as one of a composite.
Expr Composite(const std::string& op, const std::vector<Expr>& args, const Attributes& attributes = {},
               const std::string& backend = "library") {
  std::vector<Expr> parameters;
  for (const Expr& arg : args) parameters.push_back(MakeVar("p", arg->type()));
  const Expr body = CallOf(op, parameters, attributes);
  return *MakeCall(*MakeFunction(parameters, body, {{"Composite", backend + "." + op}}), args);
}

Expr Weights(int64_t channels, uint64_t seed) {
  Tensor tensor(TensorType{{channels, channels, 1, 1}, DType::kFloat32});
  FillRandom(tensor, seed);
  return MakeConstant(tensor);
}

const TensorType kData{{1, 20, 3, 2}, DType::kFloat32};

/// Composites of convolution, sums, activations, tuples and views of what came before, with one to three results.
Expr RandomRegion(uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<Expr> parameters = {MakeVar("x", kData), MakeVar("y", kData), MakeVar("unused", kData)};
  std::vector<Expr> values = {parameters[0], parameters[1]};
  const auto any = [&] { return values[random() % values.size()]; };
  for (size_t i = 2 + random() % 10; i > 0; --i) {
    switch (random() % 6) {
      case 0:
        values.push_back(Composite("nn.conv2d", {any(), Weights(20, random() % 2)}));
        break;
      case 1:
        values.push_back(Composite("add", {any(), any()}));
        break;
      case 2:
        values.push_back(CallOf("reshape", {CallOf("reshape", {any()}, {{"newshape", std::vector<int64_t>{120}}})},
                                {{"newshape", std::vector<int64_t>{1, 20, 3, 2}}}));
        break;
      case 3:
        values.push_back(*MakeTupleGetItem(MakeTuple({any(), any()}), 1));
        break;
      default:
        values.push_back(Composite("tanh", {any()}));
    }
  }
  values.push_back(Composite("nn.relu", {values.back()}));
  std::vector<Expr> results = {values.back()};
  for (size_t i = random() % 3; i > 0; --i) results.push_back(any());
  const Expr body = results.size() == 1 ? results[0] : MakeTuple(results);
  return *MakeFunction(parameters, body, {{"Primitive", 1}, {"Compiler", "library"}, {"global_symbol", "region"}});
}

class MergedRegionsTest : public ::testing::Test {
 protected:
  MergedRegionsTest() {
    options_.find_backend = [this](const std::string&, const Device&) -> Result<const Backend*> { return backend_.get(); };
  }
  Result<LoweredModel> Lowered(const Expr& region) const {
    const std::vector<Expr>& like = region->As<Function>()->parameters;
    std::vector<Expr> parameters;
    for (const Expr& parameter : like) parameters.push_back(MakeVar("v", parameter->type()));
    return Lower(IRModule::FromMain(*MakeFunction(parameters, *MakeCall(region, parameters))), options_);
  }

  OneAtATime library_;
  std::unique_ptr<Backend> backend_ = Registered(library_, "0123456789ab");
  LowerOptions options_;
};

std::vector<Tensor> RandomInputs(const Executable& executable) {
  std::vector<Tensor> inputs;
  for (const NamedType& input : executable.inputs()) FillRandom(inputs.emplace_back(input.type), inputs.size());
  return inputs;
}

TEST_F(MergedRegionsTest, ComputeWhatTheirOperatorsDoAlsoWhenSavedAndLoaded) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("merged_regions_" + std::to_string(::getpid()) + ".collage");
  for (uint64_t seed = 0; seed < Rounds(150); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Expr region = RandomRegion(seed);
    Result<LoweredModel> model = Lowered(region);
    ASSERT_TRUE(model) << model.error().message;
    const std::vector<Tensor> inputs = RandomInputs(model->executable);
    const std::vector<Tensor> expected = Interpret(*region->As<Function>(), inputs);
    ASSERT_TRUE(SaveProgram(*model, "", path));
    Result<LoweredModel> loaded = LoadProgram(path, options_);
    ASSERT_TRUE(loaded) << loaded.error().message;
    for (Executable* executable : {&model->executable, &loaded->executable}) {
      for (int run = 0; run < 2; ++run) {
        const Result<std::vector<Tensor>> outputs = executable->Run(inputs);
        ASSERT_TRUE(outputs) << outputs.error().message;
        ASSERT_EQ(outputs->size(), expected.size());
        for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(BitwiseEqual((*outputs)[i], expected[i])) << i;
      }
    }
    EXPECT_EQ(loaded->executable.calls()[0].record.variant, model->executable.calls()[0].record.variant);
  }
  std::filesystem::remove(path);
}

TEST_F(MergedRegionsTest, BlockedLayoutsStayBlockedInside) {
  const Expr x = MakeVar("x", kData);
  const Expr first = Composite("nn.conv2d", {x, Weights(20, 0)});
  const Expr region = *MakeFunction({x}, Composite("tanh", {Composite("nn.conv2d", {Composite("nn.relu", {first}), Weights(20, 1)})}));
  const std::vector<Variant> variants = backend_->Variants(*region->As<Function>(), kCpu);
  ASSERT_EQ(variants.size(), 1U);
  EXPECT_TRUE(IsMergedVariant(variants[0].name)) << variants[0].name;
  EXPECT_EQ(variants[0].inputs, std::vector<Layout>{Layout::Of("aBcd16b")});
  EXPECT_EQ(variants[0].outputs, std::vector<Layout>{Layout::Of("aBcd16b")});
  const auto kernel = backend_->Compile(*region->As<Function>(), kCpu, variants[0]);
  ASSERT_TRUE(kernel) << kernel.error().message;
  // Three tensors between four members, two alive at a time; a conversion would need a row-major one as well.
  const size_t bytes = PhysicalByteCount(kData, Layout::Of("aBcd16b"));
  EXPECT_EQ((*kernel)->workspace_bytes(), 2 * bytes);
}

TEST_F(MergedRegionsTest, WhatIsNoRegionIsRefusedWithAReason) {
  const Expr x = MakeVar("x", kData);
  const auto reason = [&](const Expr& body) {
    const Expr function = *MakeFunction({x}, body);
    EXPECT_TRUE(backend_->Variants(*function->As<Function>(), kCpu).empty());
    const Result<Variant> merged = MergedVariant(library_, *function->As<Function>(), kCpu);
    return merged ? "none" : merged.error().message;
  };
  EXPECT_THAT(reason(CallOf("tanh", {Composite("tanh", {x})})), HasSubstr("is no composite of this backend"));
  EXPECT_THAT(reason(Composite("tanh", {Composite("tanh", {x}, {}, "other")})), HasSubstr("'collage_library_other.tanh' is no composite"));
  EXPECT_THAT(reason(Composite("tanh", {Composite("exp", {x})})), HasSubstr("cannot run 'collage_library_library.exp'"));
  const Expr flat = CallOf("reshape", {x}, {{"newshape", std::vector<int64_t>{120}}});
  EXPECT_THAT(reason(CallOf("reshape", {flat}, {{"newshape", std::vector<int64_t>{60, 2}}})), HasSubstr("nothing to compute"));
  const Expr region = *MakeFunction({x}, Composite("tanh", {Composite("tanh", {x})}));
  Variant variant = backend_->Variants(*region->As<Function>(), kCpu).at(0);
  variant.name += "0";
  EXPECT_THAT(backend_->Compile(*region->As<Function>(), kCpu, variant).error().message, HasSubstr("there is no variant 'merged/"));
}

TEST(RegisteredTest, TheVersionHoldsThatOfTheSources) {
  const OneAtATime library;
  EXPECT_EQ(Registered(library, "0123456789ab")->Probe(kCpu).version, "1.0+0123456789ab");
  EXPECT_EQ(Registered(library, "")->Probe(kCpu).version, "1.0");
}

}  // namespace
}  // namespace collage
