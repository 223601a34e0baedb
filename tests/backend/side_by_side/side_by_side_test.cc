#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "collage/lower/save.h"
#include "collage/op/interpreter.h"
#include "collage/runtime/parallel.h"
#include "tests/backend/kernel_harness.h"

namespace collage {
namespace {

using namespace testing_backend;  // NOLINT(google-build-using-namespace)
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// A partition of a backend in its first variant, to be called.
struct Part {
  std::string backend;
  int64_t share;
  Expr function;
};

Expr Convolved(const Expr& x, int64_t channels, int64_t window, uint64_t seed) {
  const int64_t pad = window / 2;
  const Expr weight = RandomConstant({channels, x->type().AsTensor()->shape[1], window, window}, seed, -0.2, 0.2);
  return CallOp("nn.relu", {CallOp("nn.conv2d", {x, weight}, {{"padding", std::vector<int64_t>{pad, pad, pad, pad}}})});
}

Expr Member(const Part& part, const Expr& argument, int team = 2) {
  const Backend& backend = BackendNamed(part.backend);
  const std::vector<Variant> variants = backend.Variants(*part.function->As<Function>(), Cpu(team));
  COLLAGE_CHECK(!variants.empty(), part.backend);
  const Function& function = *part.function->As<Function>();
  static int number = 0;
  const Attributes attributes{{"Primitive", 1},
                              {"Compiler", part.backend},
                              {"Variant", variants[0].name},
                              {"Threads", static_cast<int64_t>(team)},
                              {"Share", part.share},
                              {"global_symbol", "member_" + std::to_string(number++)}};
  return *MakeCall(*MakeFunction(function.parameters, function.body, attributes), {argument});
}

Expr ConvolutionFunction(Shape shape, int64_t channels, int64_t window, uint64_t seed) {
  const Expr x = Input(std::move(shape));
  return FunctionOf({x}, Convolved(x, channels, window, seed));
}

/// One kernel as a whole program.
IRModule AsProgram(const std::vector<Expr>& parameters, const Expr& body) {
  const Expr function = *MakeFunction(parameters, body, {{"Primitive", 1}, {"Compiler", "side_by_side"}, {"global_symbol", "together"}});
  std::vector<Expr> given;
  for (const Expr& parameter : parameters) given.push_back(MakeVar(parameter->As<Var>()->name, parameter->type()));
  return IRModule::FromMain(FunctionOf(given, *MakeCall(function, given)));
}

LowerOptions Lowering(int threads) {
  LowerOptions options;
  options.device = Cpu(threads);
  options.find_backend = FindBackend;
  return options;
}

void ExpectAgreement(Executable& executable, const IRModule& module, uint64_t seed = 3) {
  std::vector<Tensor> inputs = RandomInputs(module.MainExpr(), seed);
  const std::vector<Tensor> expected = InterpretTensors(module, "main", inputs).value();
  const std::vector<Tensor> found = executable.Run(inputs).value();
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(Objection(Compare(found[i], expected[i])), "") << "result " << i;
}

class SideBySideTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* backend : {"dnnl", "native", "xsmm"}) {
      if (const auto found = FindBackend(backend, Cpu(2)); !found) GTEST_SKIP() << found.error().message;
    }
  }

  /// Two chains that begin at one tensor, as in an Inception block: of each share one, and of several backends.
  static IRModule Branches() {
    const Shape shape{1, 16, 14, 14};
    const Expr x = Input(shape);
    const Expr first = Member({"dnnl", 0, ConvolutionFunction(shape, 24, 3, 1)}, x);
    const Expr second = Member({"xsmm", 1, ConvolutionFunction(shape, 32, 1, 2)}, x);
    const Expr third = Member({"dnnl", 1, ConvolutionFunction({1, 32, 14, 14}, 8, 3, 4)}, second);
    const Expr y = Input(shape);
    const Expr fourth = Member({"native", 0, FunctionOf({y}, CallOp("sigmoid", {CallOp("nn.relu", {y})}))}, x);
    return AsProgram({x}, MakeTuple({first, third, fourth}));
  }
};

TEST_F(SideBySideTest, BranchesOfSeveralBackendsAreRight) {
  const IRModule module = Branches();
  // With one thread shares run one after another, with more than shares some have nothing to do.
  for (const int threads : {1, 2, 3}) {
    SCOPED_TRACE(threads);
    Result<LoweredModel> model = Lower(module, Lowering(threads));
    ASSERT_TRUE(model) << model.error().message;
    ASSERT_THAT(model->executable.calls(), SizeIs(1));
    EXPECT_EQ(model->executable.calls()[0].record.backend, "side_by_side");
    for (uint64_t seed = 0; seed < 20; ++seed) ExpectAgreement(model->executable, module, seed);
  }
}

TEST_F(SideBySideTest, AVariantNamesWhatEachShareRuns) {
  const IRModule module = Branches();
  const Expr call = module.Main().body;
  const Function& together = *call->As<Call>()->callee->As<Function>();
  const std::vector<Variant> variants = BackendNamed("side_by_side").Variants(together, Cpu(2));
  ASSERT_THAT(variants, SizeIs(1));
  EXPECT_THAT(variants[0].name, HasSubstr(" | xsmm "));
  EXPECT_THAT(variants[0].name, HasSubstr(", native "));
  EXPECT_EQ(variants[0].inputs.size(), 1u);
  EXPECT_EQ(variants[0].outputs.size(), 3u);
  EXPECT_EQ(BackendNamed("side_by_side").Variants(together, Cpu(4))[0].name, variants[0].name) << "a program runs on any number";
}

TEST_F(SideBySideTest, ASavedProgramIsLoaded) {
  const IRModule module = Branches();
  const LoweredModel model = Lower(module, Lowering(2)).value();
  std::string folder = (std::filesystem::temp_directory_path() / "side_by_side_test.XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::filesystem::path path = std::filesystem::path(folder) / "model.collage";
  ASSERT_TRUE(SaveProgram(model, "{}", path));
  for (const int threads : {1, 2, 4}) {
    Result<LoweredModel> loaded = LoadProgram(path, Cpu(threads));
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(loaded->executable.calls()[0].record.backend, "side_by_side");
    ExpectAgreement(loaded->executable, module);
  }
  std::filesystem::remove_all(folder);
}

TEST_F(SideBySideTest, ATwinRunsAtTheSameTime) {
  const IRModule module = Branches();
  const Expr call = module.Main().body;
  const Function& together = *call->As<Call>()->callee->As<Function>();
  const Backend& backend = BackendNamed("side_by_side");
  const Variant variant = backend.Variants(together, Cpu(2)).at(0);
  Runner first(backend.Compile(together, Cpu(2), variant).value());
  std::unique_ptr<Kernel> twin = first.kernel().Twin();
  if (!twin) GTEST_SKIP() << "a member makes no twin";
  Runner second(std::move(twin));
  const std::vector<Tensor> inputs = RandomInputs(call->As<Call>()->callee);
  const Tensor expected = Reference(call->As<Call>()->callee, inputs);
  EXPECT_EQ(Objection(Compare(second(inputs), expected)), "");
  EXPECT_EQ(Objection(Compare(first(inputs), expected)), "");
}

TEST_F(SideBySideTest, OtherFunctionsAreDeclined) {
  const Shape shape{1, 8, 6, 6};
  const Expr x = Input(shape);
  const auto reason = [&](const Expr& body) {
    const Expr function = FunctionOf({x}, body);
    EXPECT_TRUE(BackendNamed("side_by_side").Variants(*function->As<Function>(), Cpu(2)).empty());
    const auto kernel = BackendNamed("side_by_side").Compile(*function->As<Function>(), Cpu(2), {});
    return kernel ? std::string() : kernel.error().message;
  };
  const Expr layer = ConvolutionFunction(shape, 8, 1, 1);
  const Expr first = Member({"dnnl", 0, layer}, x);
  EXPECT_THAT(reason(MakeTuple({first, Member({"dnnl", 1, layer}, first)})), HasSubstr("it reads what another share makes"));
  EXPECT_THAT(reason(first), HasSubstr("fewer than two shares"));
  EXPECT_THAT(reason(MakeTuple({first, Member({"reference", 1, layer}, x)})), HasSubstr("has threads of its own"));
  EXPECT_THAT(reason(CallOp("nn.relu", {x})), HasSubstr("it has no Share"));
}

}  // namespace
}  // namespace collage
