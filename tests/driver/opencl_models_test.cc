// Models split between the host and a device of OpenCL, PoCL on any machine: as they are annotated and as the search chooses, they compute
// what the reference executor computes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "collage/backend/registry.h"
#include "collage/ir/visit.h"
#include "collage/onnx/reader.h"
#include "collage/transform/pass.h"
#include "tests/driver/decided.h"
#include "tests/driver/host_library.h"

namespace collage {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

/// So slow that a search sends something to the other device, whatever else this machine does.
class SlowLibrary : public HostLibrary {
 public:
  SlowLibrary() : HostLibrary(0) {}
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    return CompileTimed(function, device, variant, [] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return 0.0;
    });
  }
};

/// How many tensors are read on the device that calls of `op` are on and made elsewhere, or the other way round. One that several read
/// there is one, and a constant none.
size_t CountCrossings(const Expr& function, const std::string& op) {
  const auto is_there = [&](const Expr& expr) { return CalledOp(expr) && CalledOp(expr)->name == op; };
  std::set<std::pair<const ExprNode*, bool>> crossings;
  const auto read = [&](const Expr& tensor, bool there) {
    if (!tensor->As<Constant>() && is_there(tensor) != there) crossings.insert({tensor.get(), there});
  };
  PostOrder(function, [&](const Expr& expr) {
    if (const Call* call = expr->As<Call>()) {
      for (const Expr& argument : call->args) read(argument, is_there(expr));
    } else if (const Tuple* tuple = expr->As<Tuple>()) {
      for (const Expr& field : tuple->fields) read(field, false);
    }
  });
  read(function->As<Function>()->body, false);
  return crossings.size();
}

struct Split {
  const char* model;
  const char* on_opencl;  ///< the operator that is annotated
  const char* on_host;    ///< that which stays where the search chooses all others
};
void PrintTo(const Split& split, std::ostream* stream) { *stream << split.model; }

class ModelsOnOpenClTest : public testing::TestWithParam<Split> {
 protected:
  static Expr Model() {
    const std::filesystem::path path = std::filesystem::path(COLLAGE_ONNX_MODELS) / (std::string(GetParam().model) + ".onnx");
    OnnxModel model = ReadOnnxFile(path, {}).value();
    return RunPasses(std::move(model.module), SafeGlobalPasses()).value().MainExpr();
  }

  // Plans need not be good here.
  void SetUp() override {
    options_.budget_seconds = 1;
    options_.race_seconds = 0.1;
  }

  /// A library of the host, OpenCL, and the reference for what neither takes.
  Result<std::vector<PlacementTarget>> Targets() {
    const Device device{DeviceKind::kOpenCl, 0, 1};
    const Backend* opencl = COLLAGE_TRY(FindBackend("opencl", device));
    PlacementTarget fallback = TargetOf(*COLLAGE_TRY(FindBackend("reference", Device{})));
    fallback.is_fallback = true;
    return std::vector<PlacementTarget>{
        TargetOf(library_),
        {opencl, "1", opencl->Rules(), "opencl -compiler=opencl", false, device, COLLAGE_TRY(opencl->Open(device))},
        fallback};
  }

  /// Decides, compares a run with the reference, and notes where it was.
  void Run(const std::string& pin) {
    const Result<std::vector<PlacementTarget>> targets = Targets();
    if (!targets) GTEST_SKIP() << targets.error().message;
    // Forms have operators of their own, which no pin names.
    Decided decided(model_, Decided::On{*targets}, cache_, options_, MeasureOptions(), {{pin}, {"forms"}});
    const Result<Decision> decision = decided.Decide();
    ASSERT_TRUE(decision) << decision.error().message;
    const Plan plan = decided.Plans().plans.front();
    Result<RaceOutcome> race = decided.Race({plan});
    ASSERT_TRUE(race) << race.error().message;
    EXPECT_EQ(race->not_compared, "");
    Executable& executable = race->lowered->executable;
    executable.SetProfiling(true);
    const ReferenceSample& sample = decided.sample();
    const std::vector<Tensor> found = executable.Run(sample.inputs).value();
    ASSERT_EQ(found.size(), sample.expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_LE(sample.CompareOutput(i, found[i]).difference, sample.tolerance);
    for (const OperatorPlacement& op : decided.Report(plan).operators) {
      devices_of_[op.op].insert(op.device);
      devices_.insert(op.device);
    }
    for (const StepProfile& step : executable.profile()) transfers_ += step.kind == "transfer" ? 1 : 0;
  }

  SlowLibrary library_;
  CompileOptions options_;
  MeasurementCache cache_ = MeasurementCache::Open({}).value();
  Expr model_ = Model();
  std::map<std::string, std::set<std::string>> devices_of_;  // by operator
  std::set<std::string> devices_;
  size_t transfers_ = 0;
};

TEST_P(ModelsOnOpenClTest, AsAnnotated) {
  Run(std::string(GetParam().on_opencl) + "=opencl:0");
  if (IsSkipped() || HasFailure()) return;
  for (const auto& [op, devices] : devices_of_) EXPECT_THAT(devices, ElementsAre(op == GetParam().on_opencl ? "opencl:0" : "")) << op;
  EXPECT_EQ(transfers_, CountCrossings(model_, GetParam().on_opencl));
}

TEST_P(ModelsOnOpenClTest, AsChosen) {
  options_.choose_devices = true;
  Run(std::string(GetParam().on_host) + "=cpu:0");
  if (IsSkipped() || HasFailure()) return;
  EXPECT_THAT(devices_of_[GetParam().on_host], ElementsAre(""));
  EXPECT_THAT(devices_, Contains("opencl:0"));
}

INSTANTIATE_TEST_SUITE_P(All, ModelsOnOpenClTest,
                         testing::Values(Split{"mnist", "nn.conv2d", "nn.max_pool2d"}, Split{"squeezenet", "nn.conv2d", "nn.max_pool2d"},
                                         Split{"bert_encoder", "nn.matmul", "nn.softmax"}),
                         [](const auto& info) { return std::string(info.param.model); });

}  // namespace
}  // namespace collage
