#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "collage/backend/registry.h"
#include "collage/cache/cache_maintenance.h"
#include "collage/lower/save.h"
#include "collage/onnx/reader.h"
#include "collage/transform/pass.h"
#include "tests/driver/accelerator.h"
#include "tests/driver/decided.h"
#include "tests/driver/host_library.h"
#include "tests/support/log_lines.h"

namespace collage {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DriverDevicesTest : public testing::Test {
 protected:
  /// The host's library first, then the accelerator.
  std::unique_ptr<Decided> Start(const Expr& function, const UserConstraints& constraints = {}) {
    return std::make_unique<Decided>(function, Decided::On{{TargetOf(library_), accelerator_.Target()}}, cache_, options_, MeasureOptions(),
                                     constraints);
  }

  /// Where each operator of the searched plan runs, in the order of the program.
  static std::vector<std::string> Where(const Decided& decided, const Plan& plan) {
    std::vector<std::string> where;
    for (const OperatorPlacement& op : decided.Report(plan).operators) where.push_back(op.op + (op.device.empty() ? "" : "@" + op.device));
    return where;
  }

  /// The host's library, and backends on a device. Errors say which is not there, and why.
  [[nodiscard]] Result<std::vector<PlacementTarget>> BesideTheHost(const Device& device, const std::vector<std::string>& names) {
    std::vector<PlacementTarget> targets{TargetOf(library_)};
    for (const std::string& name : names) {
      const Backend* backend = COLLAGE_TRY(FindBackend(name, device));
      const std::string target = std::string(Name(device.kind)) + " -compiler=" + name;
      targets.push_back({backend, "1", backend->Rules(), target, false, device, COLLAGE_TRY(backend->Open(device))});
    }
    return targets;
  }

  /// What a run of a plan does, step by step.
  static std::vector<std::string> StepsOf(Decided& decided, const Plan& plan) {
    Result<RaceOutcome> race = decided.Race({plan});
    EXPECT_TRUE(race) << (race ? "" : race.error().message);
    if (!race) return {};
    Executable& executable = race->lowered->executable;
    executable.SetProfiling(true);
    std::vector<Tensor> inputs;
    for (const NamedType& input : executable.inputs()) FillRandom(inputs.emplace_back(input.type), 7);
    EXPECT_TRUE(executable.Run(inputs));
    std::vector<std::string> kinds;
    for (const StepProfile& step : executable.profile()) kinds.push_back(step.kind);
    return kinds;
  }

  /// The plan that was decided, after it was run and compared with the reference; how many copies a run makes is in the device.
  Plan Run(Decided& decided) {
    const Result<Decision> decision = decided.Decide();
    EXPECT_TRUE(decision) << decision.error().message;
    Plan plan = decided.Plans().plans.front();
    Result<RaceOutcome> race = decided.Race({plan});
    EXPECT_TRUE(race) << race.error().message;
    if (!race) return plan;
    EXPECT_EQ(race->not_compared, "");
    std::vector<Tensor> inputs;
    for (const NamedType& input : race->lowered->executable.inputs()) FillRandom(inputs.emplace_back(input.type), 7);
    accelerator_.device->copies_in = accelerator_.device->copies_out = 0;
    EXPECT_TRUE(race->lowered->executable.Run(inputs));
    return plan;
  }

  [[nodiscard]] int Copies() const { return accelerator_.device->copies_in + accelerator_.device->copies_out; }

  SimulatedClock clock_;
  HostLibrary library_{200e-6};
  Accelerator accelerator_;
  CompileOptions options_;
  MeasurementCache cache_ = MeasurementCache::Open({}).value();
};

constexpr const char* kChain = "fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); %1 = sigmoid(%0); %2 = nn.relu(%1); tanh(%2) }";

TEST_F(DriverDevicesTest, WithoutStatementsEverythingStaysOnTheHost) {
  const auto decided = Start(Parsed(kChain));
  const Plan plan = Run(*decided);
  EXPECT_THAT(Where(*decided, plan), ElementsAre("nn.relu", "sigmoid", "nn.relu", "tanh"));
  EXPECT_EQ(Copies(), 0);
}

TEST_F(DriverDevicesTest, AnnotationsPlaceCallsAndTheNeededCopiesAreMade) {
  const auto decided =
      Start(Parsed("fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); %1 = on_device(%0, virtual_device=\"cpu:0\"); %2 = sigmoid(%1); "
                   "%3 = nn.relu(%2); %4 = on_device(%3, virtual_device=\"cuda:0\"); tanh(%4) }"));
  const Plan plan = Run(*decided);
  EXPECT_THAT(Where(*decided, plan), ElementsAre("nn.relu", "sigmoid@cuda:0", "nn.relu@cuda:0", "tanh"));
  EXPECT_EQ(Copies(), 2);
}

TEST_F(DriverDevicesTest, APinMovesItsCallAlone) {
  const auto decided = Start(Parsed(kChain), {{"sigmoid=cuda:0"}, {}});
  const Plan plan = Run(*decided);
  EXPECT_THAT(Where(*decided, plan), ElementsAre("nn.relu", "sigmoid@cuda:0", "nn.relu", "tanh"));
  EXPECT_EQ(Copies(), 2);
  EXPECT_THAT(decided->Report(plan).pins, ElementsAre("sigmoid=cuda:0"));
}

TEST_F(DriverDevicesTest, TheClassicFlowHasNoPlanWhereAPinIsElsewhere) {
  PlacementTarget fallback = TargetOf(*FindBackend("reference", Device{}).value());
  fallback.is_fallback = true;
  const Decided decided(Parsed(kChain), Decided::On{{TargetOf(library_), accelerator_.Target(), fallback}}, cache_, options_,
                        MeasureOptions(), {{"sigmoid=cuda:0"}, {}});
  const std::vector<GreedyPlan> plans = GreedyPlans(decided.placement());
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].reason, "what is said of devices excludes it, or it is of strings");
  for (const PricedCandidate& candidate : plans[0].candidates)
    EXPECT_TRUE(decided.placement().MayTake(candidate.backend, candidate.candidate.sub_graph.inside()));
}

TEST_F(DriverDevicesTest, ABackendOfOneDevicePinsToThat) {
  const auto decided = Start(Parsed(kChain), {{"sigmoid=accelerator"}, {}});
  const Plan plan = Run(*decided);
  EXPECT_THAT(Where(*decided, plan), ElementsAre("nn.relu", "sigmoid@cuda:0", "nn.relu", "tanh"));
}

TEST_F(DriverDevicesTest, WhatIsSaidWronglyIsAnError) {
  Pricer pricer({}, cache_, {});
  const auto error = [&](const std::string& text, const UserConstraints& said) {
    const Result<PlacementPointer> placement =
        MakePlacement(Parsed(text), {TargetOf(library_), accelerator_.Target()}, pricer, options_.progress, said);
    return placement ? std::string("no error") : placement.error().message;
  };
  EXPECT_EQ(error(kChain, {{"sigmoid=cuda:1"}, {}}), "--pin sigmoid=cuda:1: cuda:1 is none of the targets' devices, cpu:0, cuda:0");
  EXPECT_EQ(error(kChain, {{"erf=cuda:0"}, {}}), "--pin erf=cuda:0: the program has no node and calls no operator 'erf'");
  EXPECT_THAT(error("fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); on_device(%0, virtual_device=\"cuda:0\", constrain_body=True) }",
                    {{"nn.relu=cpu:0"}, {}}),
              AllOf(HasSubstr("cpu:0"), HasSubstr("cuda:0")));
  EXPECT_THAT(error(kChain, {{"sigmoid=cuda:0", "%1=cpu:0"}, {}}), HasSubstr("is pinned to cuda:0 by --pin sigmoid=cuda:0"));
}

TEST_F(DriverDevicesTest, TheSearchChoosesWhatPays) {
  options_.choose_devices = true;
  // 4 * 200 us on the host; 4 * 100 us and two copies of 10 us on the accelerator.
  const auto decided = Start(Parsed(kChain));
  const Plan plan = Run(*decided);
  EXPECT_EQ(decided->Report(plan).operators.back().device, "cuda:0");
  EXPECT_EQ(Copies(), 2);
}

class LostDeviceTest : public DriverDevicesTest {
 protected:
  LostDeviceTest() { options_.choose_devices = true; }

  std::unique_ptr<Decided> Begin(MeasurementCache& cache) {
    return std::make_unique<Decided>(Parsed(kChain), Decided::On{{TargetOf(library_), accelerator_.Target()}}, cache, options_);
  }
  /// The accelerator is lost after so many waits of `work`, and is back when that has ended.
  Status LosingIt(int good_waits, const std::function<Status()>& work) {
    accelerator_.device->good_waits = good_waits;
    const Status done = work();
    accelerator_.device->good_waits = -1;
    return done;
  }
  static Status RaceOf(Decided& decided) {
    COLLAGE_TRY(decided.Race(decided.Plans().plans));
    return {};
  }
  static Status DecideAndRace(Decided& decided) {
    COLLAGE_TRY(decided.Decide());
    return RaceOf(decided);
  }

  /// It was said, and whoever goes on from that cache finds the plan on the device.
  void ExpectLossLeftNoTrace(const Status& done, MeasurementCache& cache) {
    EXPECT_THAT(done.error().message, HasSubstr("cuda:0 (fake accelerator) does not work any more: it has fallen off the bus"));
    EXPECT_TRUE(ForEachEntry(cache, [](const CacheEntry& entry) {
      EXPECT_EQ(entry.measurement.invalid_reason, "") << entry.key.backend << " " << entry.key.variant;
      return Status();
    }));
    const std::unique_ptr<Decided> decided = Begin(cache);
    const Status again = DecideAndRace(*decided);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(Where(*decided, decided->Plans().plans.front()).back(), "tanh@cuda:0");
  }
};

TEST_F(LostDeviceTest, AtAnyMomentItIsSaidAndNothingIsHeldAgainstKernels) {
  size_t lost = 0;
  for (int good_waits = 0;; good_waits = good_waits * 5 / 4 + 1) {
    SCOPED_TRACE(good_waits);
    MeasurementCache cache = MeasurementCache::Open({}).value();
    const Status done = LosingIt(good_waits, [&] { return DecideAndRace(*Begin(cache)); });
    if (done) break;
    ++lost;
    ExpectLossLeftNoTrace(done, cache);
  }
  EXPECT_GT(lost, 10u);
}

TEST_F(LostDeviceTest, InARaceNothingIsHeldAgainstPlans) {
  constexpr int kMomentsOfTheRace = 30;  // building, the comparisons with the reference, and the first rounds
  for (int good_waits = 0; good_waits < kMomentsOfTheRace; ++good_waits) {
    SCOPED_TRACE(good_waits);
    MeasurementCache cache = MeasurementCache::Open({}).value();
    const std::unique_ptr<Decided> decided = Begin(cache);
    ASSERT_TRUE(decided->Decide());
    const Status done = LosingIt(good_waits, [&] { return RaceOf(*decided); });
    ASSERT_FALSE(done);
    ExpectLossLeftNoTrace(done, cache);
  }
}

TEST_F(DriverDevicesTest, CopiesThatCostMoreThanTheyGainAreNotMade) {
  options_.choose_devices = true;
  accelerator_.device->on_copy = [](size_t) { SimulatedClock::Pass(2e-3); };
  const auto decided = Start(Parsed(kChain));
  const Plan plan = Run(*decided);
  EXPECT_THAT(Where(*decided, plan), ElementsAre("nn.relu", "sigmoid", "nn.relu", "tanh"));
  EXPECT_EQ(Copies(), 0);
}

TEST_F(DriverDevicesTest, WhatIsStatedHoldsAlsoWhereTheSearchChooses) {
  options_.choose_devices = true;
  const auto decided = Start(Parsed(kChain), {{"tanh=cpu:0"}, {}});
  const Plan plan = Run(*decided);
  EXPECT_EQ(decided->Report(plan).operators.back().device, "");
  EXPECT_EQ(decided->Report(plan).operators.front().device, "cuda:0");
}

class MnistOnDevicesTest : public DriverDevicesTest {
 protected:
  static Expr Model() {
    const std::filesystem::path path = std::filesystem::path(COLLAGE_ONNX_MODELS) / "mnist.onnx";
    OnnxModel model = ReadOnnxFile(path, {}).value();
    return RunPasses(std::move(model.module), SafeGlobalPasses()).value().MainExpr();
  }
};

TEST_F(MnistOnDevicesTest, AsAnnotated) {
  const auto decided = Start(Model(), {{"nn.conv2d=cuda:0"}, {}});
  const Plan plan = Run(*decided);
  size_t moved = 0;
  for (const OperatorPlacement& op : decided->Report(plan).operators) {
    EXPECT_EQ(op.device, op.op == "nn.conv2d" ? "cuda:0" : "") << op.op;
    moved += op.device.empty() ? 0 : 1;
  }
  EXPECT_EQ(moved, 2u);
  EXPECT_EQ(Copies(), 4);
}

TEST_F(MnistOnDevicesTest, AsChosen) {
  options_.choose_devices = true;
  const auto decided = Start(Model(), {{"nn.max_pool2d=cpu:0"}, {}});
  const Plan plan = Run(*decided);
  std::set<std::string> devices;
  for (const OperatorPlacement& op : decided->Report(plan).operators) devices.insert(op.device);
  EXPECT_THAT(devices, ElementsAre("", "cuda:0"));
}

TEST_F(DriverDevicesTest, TheLibrariesOfAGpuPassTensorsWithoutCopies) {
  const Result<std::vector<PlacementTarget>> targets = BesideTheHost({DeviceKind::kCuda, 0, 1}, {"cuda", "cublas"});
  if (!targets) GTEST_SKIP() << targets.error().message;
  const Expr function = Parsed(
      "fn (%x: Tensor[(6, 6), float32], %y: Tensor[(6, 6), float32]) { %0 = nn.softmax(%x); %1 = nn.matmul(%y, %0); "
      "%2 = sigmoid(%1); nn.matmul(%2, %y) }");
  Decided decided(function, Decided::On{*targets}, cache_, options_, MeasureOptions(),
                  {{"nn.softmax=cuda", "nn.matmul=cublas", "sigmoid=cuda"}, {}});
  const Plan plan = Run(decided);
  EXPECT_THAT(Where(decided, plan), ElementsAre("nn.softmax@cuda:0", "nn.matmul@cuda:0", "sigmoid@cuda:0", "nn.matmul@cuda:0"));
  const std::vector<std::string> kinds = StepsOf(decided, plan);
  EXPECT_THAT(kinds, ::testing::UnorderedElementsAre("transfer", "transfer", "kernel", "kernel", "kernel", "kernel", "transfer", "wait"));
}

TEST_F(DriverDevicesTest, BackendsOfOneDevicePassTensorsWithoutCopies) {
  const Result<std::vector<PlacementTarget>> targets = BesideTheHost({DeviceKind::kOpenCl, 0, 1}, {"opencl", "clblast"});
  if (!targets) GTEST_SKIP() << targets.error().message;
  // %0 is added into, and read again.
  const Expr function = Parsed(
      "fn (%x: Tensor[(6, 6), float32], %y: Tensor[(6, 6), float32]) { %0 = nn.relu(%x); %1 = nn.matmul(%y, %y); "
      "%2 = add(%1, %0); %3 = sigmoid(%2); %4 = nn.matmul(%3, %y); add(%4, %0) }");
  Decided decided(function, Decided::On{*targets}, cache_, options_, MeasureOptions(),
                  {{"nn.relu=opencl:0", "nn.matmul=clblast", "add=clblast", "sigmoid=opencl:0"}, {}});
  const Plan plan = Run(decided);
  EXPECT_THAT(Where(decided, plan), ElementsAre("nn.matmul@opencl:0", "nn.relu@opencl:0", "add@opencl:0", "sigmoid@opencl:0",
                                                "nn.matmul@opencl:0", "add@opencl:0"));
  std::vector<std::string> kinds = StepsOf(decided, plan);
  std::erase_if(kinds, [](const std::string& kind) { return kind == "kernel" || kind == "wait"; });
  // Two inputs and the result; and what is added into although it is read again.
  EXPECT_THAT(kinds, ::testing::UnorderedElementsAre("transfer", "transfer", "transfer", "copy"));
}

TEST_F(DriverDevicesTest, ALoadedProgramDoesNotCallTheCompilerOfOpenCl) {
  const Result<std::vector<PlacementTarget>> targets = BesideTheHost({DeviceKind::kOpenCl, 0, 1}, {"opencl"});
  if (!targets) GTEST_SKIP() << targets.error().message;
  Decided decided(Parsed(kChain), Decided::On{*targets}, cache_, options_, MeasureOptions(), {{"sigmoid=opencl:0"}, {}});
  Result<RaceOutcome> race = decided.Race({Run(decided)});
  ASSERT_TRUE(race) << race.error().message;
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "opencl_test.collage";
  ASSERT_TRUE(SaveProgram(*race->lowered, "{}", file));
  Tensor input(TensorType{{1, 8}});
  FillRandom(input, 3);
  const std::vector<double> expected = race->lowered->executable.Run({&input, 1}).value()[0].ToDouble();
  BuildOptions build;
  build.find_backend = decided.lower().find_backend;
  const auto expect_loaded = [&](MachineCode machine_code, size_t compiled) {
    const LogLines log;
    Result<LoweredModel> loaded = LoadProgram(file, build, machine_code);
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(loaded->executable.Run({&input, 1}).value()[0].ToDouble(), expected);
    EXPECT_EQ(log.Count("kernels from saved code"), 1 - compiled);
    EXPECT_EQ(log.Count("kernels from their source"), compiled);
  };
  expect_loaded(MachineCode::kLoad, 0);
  expect_loaded(MachineCode::kCompileAgain, 1);
}

TEST_F(DriverDevicesTest, AProgramIsLoadedOntoItsDevices) {
  const auto decided = Start(Parsed(kChain), {{"sigmoid=cuda:0"}, {}});
  Result<RaceOutcome> race = decided->Race({Run(*decided)});
  ASSERT_TRUE(race) << race.error().message;
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "devices_test.collage";
  ASSERT_TRUE(SaveProgram(*race->lowered, "{}", file));
  BuildOptions build;
  build.find_backend = [this](const std::string& name, const Device& device) -> Result<const Backend*> {
    EXPECT_EQ(ToString(device), name == "accelerator" ? "cuda:0" : "cpu:0");
    return name == "accelerator" ? static_cast<const Backend*>(&accelerator_) : &library_;
  };
  Result<LoweredModel> loaded = LoadProgram(file, build);
  ASSERT_TRUE(loaded) << loaded.error().message;
  Tensor input(TensorType{{1, 8}});
  FillRandom(input, 3);
  accelerator_.device->copies_in = accelerator_.device->copies_out = 0;
  const std::vector<Tensor> expected = race->lowered->executable.Run({&input, 1}).value();
  const std::vector<Tensor> found = loaded->executable.Run({&input, 1}).value();
  EXPECT_EQ(found[0].ToDouble(), expected[0].ToDouble());
  EXPECT_EQ(Copies(), 4);  // two of each
}

}  // namespace
}  // namespace collage
