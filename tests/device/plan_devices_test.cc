#include "collage/device/plan_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <map>
#include <set>

#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/ir/structural.h"
#include "collage/ir/verify.h"
#include "collage/op/interpreter.h"
#include "collage/op/table.h"
#include "tests/device/naive_planner.h"
#include "tests/device/random_program.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

DeviceConfiguration Devices(const std::string& default_device) {
  const auto target = [](const char* text) { return *Target::Parse(text); };
  return *DeviceConfiguration::Create({{DeviceKind::kCpu, 0, {target("cpu")}},
                                       {DeviceKind::kCpu, 1, {target("cpu"), target("cpu -compiler=dnnl")}},
                                       {DeviceKind::kCuda, 0, {target("cuda")}},
                                       {DeviceKind::kCuda, 1, {target("cuda"), target("cuda -compiler=cudnn")}}},
                                      std::nullopt, VirtualDevice::Parse(default_device).value());
}

IRModule Parsed(const std::string& text) {
  ParseOptions options;
  options.missing_constant = RandomConstants(1);
  const Result<ParsedModule> parsed = ParseModule(text, Operators(), options);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message) << "\n" << text;
  return parsed ? parsed->module : IRModule();
}

std::string Planned(const std::string& text, const std::string& default_device = "cpu:0") {
  const DeviceConfiguration devices = Devices(default_device);
  const Result<IRModule> planned = PlanDevices(Parsed(text), devices, Operators());
  return planned ? Print(*planned) : planned.error().message;
}

void ExpectAsNaive(const IRModule& module, const DeviceConfiguration& devices) {
  const Result<DevicePlan> plan = DevicePlan::Create(module, devices);
  ASSERT_TRUE(plan) << plan.error().message;
  const NaivePlan naive = PlanNaively(module, devices);
  std::set<std::string> kinds;
  for (const DeviceError& error : plan->errors()) kinds.insert(std::string(Name(error.kind)));
  ASSERT_EQ(kinds, naive.error_kinds);
  if (!kinds.empty()) return;
  for (const auto& [expr, expected] : naive.devices) {
    std::vector<std::string> found;
    for (const TensorLeaf& leaf : plan->flow().Of(expr)) {
      found.push_back(
          plan->DeviceOf(leaf.maker == TensorLeaf::kNoMaker ? leaf.tensor : plan->MakerOf(leaf.maker, leaf.field).tensor).ToString());
    }
    EXPECT_EQ(found, expected) << Print(std::shared_ptr<const ExprNode>(std::shared_ptr<const ExprNode>(), expr));
  }
  std::map<NaivePlan::Copy, std::set<const ExprNode*>> copies;
  for (const PlannedCopy& copy : plan->copies()) {
    std::set<const ExprNode*>& users = copies[{plan->flow().makers[copy.maker].expr.get(), copy.field, copy.to.ToString()}];
    for (const TensorUse* use : copy.uses) users.insert(use->user.get());
  }
  EXPECT_EQ(copies, naive.copies);
}

void ExpectStable(const IRModule& module, const DeviceConfiguration& devices) {
  const Result<IRModule> planned = PlanDevices(module, devices, Operators());
  if (!planned) return;
  const Status verified = Verify(*planned);
  ASSERT_TRUE(verified) << verified.error().message << "\n" << Print(*planned);
  const Result<DevicePlan> again = DevicePlan::Create(*planned, devices);
  ASSERT_TRUE(again);
  ASSERT_TRUE(again->errors().empty()) << Print(*planned);
  EXPECT_TRUE(again->copies().empty()) << Print(*planned);
  const Result<PlannedProgram> same = ApplyDevicePlan(*again, Operators());
  ASSERT_TRUE(same);
  EXPECT_EQ(Print(same->module), Print(*planned));
  EXPECT_TRUE(StructuralEqual(same->module, *planned));
}

TEST(PlanDevices, IsWhatTheDefinitionSaysOnRandomPrograms) {
  const std::vector<std::string> defaults = {"cpu:0", "cuda:1", "cuda:0@global"};
  size_t planned = 0;
  for (uint64_t seed = 0; seed < Rounds(10000) && !HasFailure(); ++seed) {
    const std::string text = RandomDeviceProgram(seed, 4 + seed % 9);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    const DeviceConfiguration devices = Devices(defaults[seed % defaults.size()]);
    const IRModule module = Parsed(text);
    ExpectAsNaive(module, devices);
    ExpectStable(module, devices);
    planned += PlanDevices(module, devices, Operators()).has_value();
  }
  // Contradictions are tested too, but must not be all.
  EXPECT_GT(planned, Rounds(2000));
}

TEST(PlanDevices, ComputesTheSame) {
  size_t compared = 0;
  for (uint64_t seed = 0; seed < Rounds(300) && !HasFailure(); ++seed) {
    const std::string text = RandomDeviceProgram(seed, 8);
    // A function that calls itself whatever happens never ends.
    const std::string first = text.substr(0, text.find("def @twice"));
    if (first.find("@f(", 6) != std::string::npos || first.find("(@f,") != std::string::npos) continue;
    const IRModule module = Parsed(text);
    const Result<IRModule> planned = PlanDevices(module, Devices("cuda:0"), Operators());
    if (!planned) continue;
    std::vector<Tensor> inputs = {Tensor::Scalar(false, DType::kBool)};
    for (const TensorType& type : FlattenTensors(module.MainExpr()->type().AsFunction()->parameters[1])) inputs.emplace_back(type);
    for (size_t i = 2; i < module.Main().parameters.size(); ++i) {
      for (const TensorType& type : FlattenTensors(module.Main().parameters[i]->type())) inputs.emplace_back(type);
    }
    for (size_t i = 1; i < inputs.size(); ++i) FillRandom(inputs[i], seed + i, -1.0, 1.0);
    const Result<std::vector<Tensor>> before = InterpretMain(module, inputs);
    const Result<std::vector<Tensor>> after = InterpretMain(*planned, inputs);
    ASSERT_TRUE(before) << before.error().message;
    ASSERT_TRUE(after) << after.error().message;
    for (size_t i = 0; i < before->size(); ++i) EXPECT_TRUE(BitwiseEqual((*before)[i], (*after)[i])) << seed;
    ++compared;
  }
  EXPECT_GT(compared, Rounds(50));
}

TEST(PlanDevices, AContradictionNamesBothSources) {
  EXPECT_EQ(Planned("def @main(%x {virtual_device=\"cuda:1\"}: Tensor[(2), float32]) {\n"
                    "  let %v = on_device(%x, virtual_device=\"cuda:0\");\n  %v\n}"),
            "@main: %x is stated to be on cuda:1, but @main: %v, which must be in the same place, on cuda:0");
}

TEST(PlanDevices, CopiesAreMadeInTheBranchThatUsesThem) {
  EXPECT_EQ(Planned("def @main(%c: bool, %x {virtual_device=\"cuda:0\"}: Tensor[(2,), float32], virtual_device=\"cpu:0\") "
                    "-> Tensor[(2,), float32] {\n  if (%c) {\n    tanh(%x)\n  } else {\n    ones(shape=[2])\n  }\n}"),
            "def @main(%c {virtual_device=\"cpu:0\"}: bool, %x {virtual_device=\"cuda:0\"}: Tensor[(2,), float32], "
            "virtual_device=\"cpu:0\") -> Tensor[(2,), float32] {\n"
            "  if (%c) {\n"
            "    %0 = tanh(%x);\n"
            "    device_copy(%0, src_virtual_device=\"cuda:0\", dst_virtual_device=\"cpu:0\")\n"
            "  } else {\n"
            "    ones(shape=[2])\n"
            "  }\n"
            "}\n");
}

/// Operators one after another, every hundredth with a statement, so that copies are made all along.
std::string Chain(size_t operators) {
  std::string text = "def @main(%x: Tensor[(2), float32]) {\n";
  std::string last = "%x";
  for (size_t i = 0; i < operators; ++i) {
    const std::string name = "%" + std::to_string(i);
    if (i % 100 == 99) {
      text += "  " + name + " = on_device(" + last + ", virtual_device=\"" + (i % 200 == 99 ? "cuda:0" : "cpu:1") +
              "\", constrain_result=True);\n";
    } else {
      text += "  " + name + (i % 2 ? " = add(" + last + ", %x);\n" : " = tanh(" + last + ");\n");
    }
    last = name;
  }
  return text + "  " + last + "\n}\n";
}

double SecondsToPlan(size_t operators) {
  const IRModule module = Parsed(Chain(operators));
  const DeviceConfiguration devices = Devices("cpu:0");
  const std::clock_t start = std::clock();
  EXPECT_TRUE(PlanDevices(module, devices, Operators()));
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST(PlanDevices, IsNearlyLinear) {
  // Processor time of this process, at two sizes: the ratio of an algorithm that is linear but for a logarithm stays below 20, that of a
  // quadratic one is 100 at every try. What else runs on the machine spoils some tries.
  double ratio = std::numeric_limits<double>::infinity();
  for (int tries = 0; tries < 5 && ratio > 30; ++tries) {
    const double small = SecondsToPlan(Rounds(10'000));
    ratio = std::min(ratio, SecondsToPlan(Rounds(100'000)) / small);
  }
  RecordProperty("ratio", std::to_string(ratio));
  EXPECT_LT(ratio, 30);
}

TEST(PlanDevices, LongNestsNeedNoStack) {
  std::string text = "def @main(%x: Tensor[(2), float32]) {\n";
  for (size_t i = 0; i < 20'000; ++i) {
    text += "  let %v" + std::to_string(i) + " = tanh(" + (i ? "%v" + std::to_string(i - 1) : "%x") + ");\n";
  }
  EXPECT_TRUE(PlanDevices(Parsed(text + "  %v19999\n}\n"), Devices("cpu:0"), Operators()));
}

}  // namespace
}  // namespace collage
