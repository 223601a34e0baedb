// The whole model in the form in which it came is a candidate of every graph compiler, and of nobody else.

#include "collage/driver/whole_model.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "collage/backend/onnx_variants.h"
#include "collage/ir/original_model.h"
#include "collage/lower/save.h"
#include "collage/onnx/original.h"
#include "collage/onnx/writer.h"
#include "collage/op/interpreter.h"
#include "collage/transform/pass.h"
#include "tests/driver/decided.h"

namespace collage {
namespace {

/// A graph compiler of ONNX models that says how long each form takes.
class OnnxCompiler : public Backend {
 public:
  OnnxCompiler(double original, double rewritten, std::string name = "compiler")
      : original_(original), rewritten_(rewritten), name_(std::move(name)) {}
  [[nodiscard]] std::string_view Name() const override { return name_; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override {
    return {BackendRules::Style::kPredicate, {}, [](const Expr&) { return Verdict::Accept(); }};
  }
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device&) const override {
    return OnnxVariants(function, [](const Expr&) { return Verdict::Accept(); });
  }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    const bool is_original = variant.name == kOriginalVariant;
    // What it computes is what the bytes say.
    const OnnxForm form = COLLAGE_TRY(is_original ? OriginalForm(function) : RewrittenForm(function));
    OnnxModel model = COLLAGE_TRY(ReadOnnx(form.bytes));
    if (model.input_names != form.input_names) return Fail("the form has other inputs");
    return CompileTimed(model.module.Main(), device, variant, [seconds = is_original ? original_ : rewritten_] { return seconds; });
  }

 private:
  double original_;
  double rewritten_;
  std::string name_;
};

/// Takes single calls.
class Library : public OnnxCompiler {
 public:
  Library() : OnnxCompiler(1, 1e-2, "library") {}
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    for (const char* op : {"nn.relu", "tanh", "add"}) {
      const size_t count = std::string_view(op) == "add" ? 2 : 1;
      rules.patterns.push_back({std::string("library.") + op, pattern::CallOf(op, std::vector<Pattern>(count, pattern::Wildcard())), {}});
    }
    return rules;
  }
};

class WholeModelTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "whole_model_test.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    const Expr written = Parsed(R"(fn (%x: Tensor[(2, 8), float32], %y: Tensor[(8), float32]) {
      %0 = nn.relu(%x); %1 = tanh(%0); %2 = add(%1, %y); (%2, %0, %2)
    })");
    const std::string bytes = WriteOnnx(*written->As<Function>()).value();
    std::ofstream(folder_ / "model.onnx", std::ios::binary) << bytes;
    model_ = std::make_shared<const OnnxModel>(OnnxFile::Open(folder_ / "model.onnx")->Read({}).value());
    function_ = RunPasses(model_->module, SafeGlobalPasses())->MainExpr();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Decided Decide(const std::vector<const Backend*>& backends, const UserConstraints& constraints = {}, bool carries = true) {
    return {function_, Decided::On{Decided::TargetsOf(backends)}, cache_, {}, {}, constraints, carries ? model_ : nullptr};
  }

  static size_t Offers(const Decided& decided) {
    size_t count = 0;
    for (const PlacedKernel& kernel : decided.placement().kernels) count += kernel.key.variant == kOriginalVariant ? 1 : 0;
    return count;
  }

  const SimulatedClock clock_;
  std::filesystem::path folder_;
  std::shared_ptr<const OnnxModel> model_;
  Expr function_;
  MeasurementCache cache_ = MeasurementCache::Open({}).value();
};

TEST_F(WholeModelTest, EveryGraphCompilerIsOfferedItAndNobodyElse) {
  const OnnxCompiler one(1, 1);
  const OnnxCompiler other(1, 1, "other");
  const Library library;
  EXPECT_EQ(Offers(Decide({&one, &other, &library})), 2U);
  EXPECT_EQ(Offers(Decide({&one, &other, &library}, {}, /*carries=*/false)), 0U) << "nothing came as ONNX";
}

TEST_F(WholeModelTest, PinsAndForbidsHold) {
  const OnnxCompiler compiler(1e-4, 1e-3);
  const Library library;
  EXPECT_EQ(Offers(Decide({&compiler, &library}, {{"tanh=library"}, {}})), 0U);
  EXPECT_EQ(Offers(Decide({&compiler, &library}, {{}, {"compiler:tanh"}})), 0U);
  EXPECT_EQ(Offers(Decide({&compiler, &library}, {{"tanh=compiler"}, {}})), 1U);
}

TEST_F(WholeModelTest, TheFasterFormIsChosen) {
  for (const bool original_is_faster : {true, false}) {
    const OnnxCompiler compiler(original_is_faster ? 1e-3 : 2e-3, original_is_faster ? 2e-3 : 1e-3);
    cache_ = MeasurementCache::Open({}).value();
    Decided decided = Decide({&compiler});
    const Decision decision = decided.Decide(decided.placement().AllowedFor(0)).value();
    const Plan plan = MakePlan(decided.placement(), "compiler", decision.best);
    EXPECT_EQ(decided.Count(plan, std::string(kOriginalVariant)), original_is_faster ? 1U : 0U);
    EXPECT_EQ(decided.Count(plan, std::string(kRewrittenVariant)), original_is_faster ? 0U : 1U);
  }
}

TEST_F(WholeModelTest, AProgramOfItIsSavedAndLoaded) {
  const OnnxCompiler compiler(1e-3, 2e-3);
  Decided decided = Decide({&compiler});
  const Plan plan = MakePlan(decided.placement(), "compiler", decided.Decide(decided.placement().AllowedFor(0))->best);
  const IRModule module = Apply(decided.placement(), plan).value();
  const LoweredModel lowered = Lower(module, decided.lower()).value();
  const std::filesystem::path path = folder_ / "model.collage";
  ASSERT_TRUE(SaveProgram(lowered, "", path));
  std::filesystem::remove(folder_ / "model.onnx");
  BuildOptions options;
  options.find_backend = decided.lower().find_backend;
  Result<LoweredModel> loaded = LoadProgram(path, options);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(ReadProgramInfo(path)->plan.at(0).variant, kOriginalVariant);

  std::vector<Tensor> inputs = {Tensor(TensorType{{2, 8}, DType::kFloat32}), Tensor(TensorType{{8}, DType::kFloat32})};
  for (Tensor& input : inputs) FillRandom(input, 7);
  const std::vector<Tensor> expected = InterpretMain(model_->module, inputs).value();
  const std::vector<Tensor> found = loaded->executable.Run(inputs).value();
  ASSERT_EQ(found.size(), 3U);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(BitwiseEqual(found[i], expected[i])) << "output " << i;
}

}  // namespace
}  // namespace collage
