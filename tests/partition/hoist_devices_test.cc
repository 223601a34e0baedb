// Hoisting against what it is said to be, on random programs with statements about devices.

#include "collage/partition/hoist_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/ir/verify.h"
#include "collage/ir/visit.h"
#include "collage/op/interpreter.h"
#include "collage/op/table.h"
#include "tests/candidate/oracle.h"
#include "tests/dataflow/evaluate.h"
#include "tests/device/naive_planner.h"
#include "tests/device/random_program.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

using Mask = Oracle::Mask;
using Field = VirtualDeviceField;

Mask Bit(size_t node) { return Mask{1} << node; }

DeviceConfiguration Devices() {
  const auto target = [](const char* text) { return *Target::Parse(text); };
  return *DeviceConfiguration::Create({{DeviceKind::kCpu, 0, {target("cpu")}},
                                       {DeviceKind::kCpu, 1, {target("cpu"), target("cpu -compiler=dnnl")}},
                                       {DeviceKind::kCuda, 0, {target("cuda")}},
                                       {DeviceKind::kCuda, 1, {target("cuda"), target("cuda -compiler=cudnn")}}},
                                      std::nullopt, std::nullopt);
}

/// What counts of a device and what stays in place differ from seed to seed.
HoistOptions OptionsOf(uint64_t seed) {
  HoistOptions options;
  if (seed % 4 == 1) options.by = {Field::kDeviceType};
  if (seed % 4 == 2) options.by = {Field::kDeviceType, Field::kVirtualDeviceId};
  options.keep = {VirtualDevice::Parse(seed % 3 == 0 ? "cuda" : "cpu:0").value()};
  return options;
}

/// A function without control flow, every second call of which is said to be somewhere.
Expr Annotated(uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<std::string> devices = {"cpu:0", "cuda:0", "cuda:0", "cuda:1", "cuda:1 -compiler=cudnn", "cuda:0@global"};
  return Rewrite(RandomFunction(seed, 4 + seed % 9),
                 [&](const Expr&, const Expr& expr) -> Result<Expr> {
                   if (!CalledOp(expr) || !expr->type().AsTensor() || random() % 2 == 0) return expr;
                   return MakeCall(Operators().Find("on_device"), {expr},
                                   {{"virtual_device", devices[random() % devices.size()]}, {"constrain_result", true}});
                 })
      .value();
}

/// A program that was planned, its graphs, and the regions found in them.
struct Found {
  Found(const IRModule& module, const DeviceConfiguration& devices, const HoistOptions& options)
      : plan(DevicePlan::Create(module, devices).value()), planned(ApplyDevicePlan(plan, Operators()).value()) {
    for (const auto& [name, function] : planned.module.functions()) {
      if (IsAtomicFunction(function)) continue;
      names.push_back(name);
      graphs.push_back(std::make_unique<DataflowGraph>(function));
      pointers.push_back(graphs.back().get());
      regions.push_back(FindDeviceRegions(plan, planned, *graphs.back(), options));
    }
  }
  [[nodiscard]] IRModule Hoisted() const { return HoistRegions(plan, planned, pointers, regions, Operators()).value(); }

  DevicePlan plan;
  PlannedProgram planned;
  std::vector<std::string> names;
  std::vector<std::unique_ptr<DataflowGraph>> graphs;
  std::vector<const DataflowGraph*> pointers;
  std::vector<std::vector<DeviceRegion>> regions;
};

/// What was hoisted stays: planned again nothing changes, functions of before have nothing more to hoist, and each new one is a region.
void ExpectAllIsHoisted(const Found& found, const IRModule& hoisted, const HoistOptions& options) {
  const Status verified = Verify(hoisted);
  ASSERT_TRUE(verified) << verified.error().message << "\n" << Print(hoisted);
  const DeviceConfiguration& devices = found.plan.configuration();
  EXPECT_EQ(Print(PlanDevices(hoisted, devices, Operators()).value()), Print(hoisted));
  size_t regions = 0;
  for (const std::vector<DeviceRegion>& of_function : found.regions) regions += of_function.size();
  const Found again(hoisted, devices, options);
  // What only a tuple holds, and nobody reads, is gone.
  ASSERT_LE(again.names.size(), found.names.size() + regions);
  for (size_t i = 0; i < again.names.size(); ++i) {
    const DataflowGraph& graph = *again.graphs[i];
    if (std::find(found.names.begin(), found.names.end(), again.names[i]) != found.names.end()) {
      EXPECT_TRUE(again.regions[i].empty()) << again.names[i] << "\n" << Print(hoisted);
      continue;
    }
    // A kernel that is bound by a let elsewhere is a parameter here, and its call that of a value.
    EXPECT_LE(again.regions[i].size(), 1u) << again.names[i] << "\n" << Print(hoisted);
    for (PostDfsIndex node = 0; node < graph.size(); ++node) {
      if (!CalledOp(graph[node].expr)) continue;
      EXPECT_TRUE(!again.regions[i].empty() && again.regions[i][0].nodes.Contains(node)) << again.names[i] << "\n" << Print(hoisted);
    }
    EXPECT_TRUE(Target::Parse(graph.function()->As<Function>()->attributes.String("target", "").value())) << Print(hoisted);
  }
}

/// The definition over one function without control flow, small enough for masks.
class Definition {
 public:
  Definition(const Found& found, const HoistOptions& options)
      : found_(found),
        options_(options),
        graph_(*found.graphs[0]),
        oracle_(graph_),
        naive_(PlanNaively(found.planned.module, found.plan.configuration())) {
    for (const DeviceRegion& region : found.regions[0]) {
      Mask set = 0;
      region.nodes.ForEach([&](size_t node) { set |= Bit(node); });
      sets_.push_back(set);
    }
  }

  /// "each operator's VirtualDevice, or a projection, as its backend; the host (keep) stays in place"
  void EveryOperatorIsInOneRegionOfItsDevice() const {
    for (const size_t node : Oracle::Members(oracle_.Calls())) {
      const std::optional<VirtualDevice> owner = OwnerOf(graph_[node].expr);
      const auto holds = [&](Mask set) { return (set & Bit(node)) != 0; };
      EXPECT_EQ(std::count_if(sets_.begin(), sets_.end(), holds), owner ? 1 : 0) << node << "\n" << Print(found_.planned.module);
    }
    for (const Mask set : sets_) {
      std::optional<VirtualDevice> common;
      for (const size_t node : Oracle::Members(set & oracle_.Calls())) {
        const std::optional<VirtualDevice> owner = OwnerOf(graph_[node].expr);
        if (!common) common = owner;
        EXPECT_EQ(owner == common, true) << node << "\n" << Print(found_.planned.module);
      }
    }
  }

  /// "largest regions per target without creating a cycle"
  void NoTwoRegionsCouldBeOne() const {
    EXPECT_TRUE(oracle_.IsAcyclicWhenContracted(sets_)) << Print(found_.planned.module);
    for (size_t a = 0; a < sets_.size(); ++a) {
      for (size_t b = 0; b < sets_.size(); ++b) {
        if (a == b || !oracle_.Feeds(sets_[a], sets_[b]) || !(OwnerOfSet(a) == OwnerOfSet(b))) continue;
        std::vector<Mask> joined = {sets_[a] | sets_[b]};
        for (const Mask set : sets_) {
          if ((set & joined[0]) == 0) joined.push_back(set);
        }
        EXPECT_FALSE(oracle_.IsAcyclicWhenContracted(joined)) << "regions " << a << " and " << b << "\n" << Print(found_.planned.module);
      }
    }
  }

 private:
  /// Nothing for what is not hoisted.
  [[nodiscard]] std::optional<VirtualDevice> OwnerOf(const Expr& call) const {
    VirtualDevice last = Full(naive_.devices.at(call.get())[0]);
    VirtualDevice first = last;
    if (CalledOp(call)->name == "device_copy") first = Full(naive_.devices.at(call->As<Call>()->args[0].get())[0]);
    if (IsKept(first) && IsKept(last)) return std::nullopt;
    first = Projected(first);
    if (!(first == Projected(last))) return std::nullopt;
    return first;
  }
  [[nodiscard]] VirtualDevice OwnerOfSet(size_t set) const {
    return *OwnerOf(graph_[Oracle::Members(sets_[set] & oracle_.Calls())[0]].expr);
  }

  /// A device's own target compiles what says no other.
  static VirtualDevice Full(const std::string& text) {
    VirtualDevice device = VirtualDevice::Parse(text).value();
    if (!device.target) device.target = Target{*device.device_type, {}};
    return device;
  }
  [[nodiscard]] bool IsKept(const VirtualDevice& device) const {
    const VirtualDevice& keep = options_.keep[0];
    return device.device_type == keep.device_type && device.virtual_device_id == keep.virtual_device_id.value_or(*device.virtual_device_id);
  }
  [[nodiscard]] VirtualDevice Projected(VirtualDevice device) const {
    const auto counts = [&](Field field) { return std::find(options_.by.begin(), options_.by.end(), field) != options_.by.end(); };
    if (!counts(Field::kVirtualDeviceId)) device.virtual_device_id.reset();
    if (!counts(Field::kTarget)) device.target.reset();
    if (!counts(Field::kMemoryScope)) device.memory_scope.clear();
    return device;
  }

  const Found& found_;
  const HoistOptions& options_;
  const DataflowGraph& graph_;
  Oracle oracle_;
  NaivePlan naive_;
  std::vector<Mask> sets_;
};

void ExpectSameResults(const IRModule& actual, const IRModule& expected, const std::vector<Tensor>& inputs) {
  const Result<std::vector<Tensor>> before = InterpretMain(expected, inputs);
  const Result<std::vector<Tensor>> after = InterpretMain(actual, inputs);
  ASSERT_TRUE(before) << before.error().message;
  ASSERT_TRUE(after) << after.error().message << "\n" << Print(actual);
  ASSERT_EQ(after->size(), before->size());
  for (size_t i = 0; i < before->size(); ++i) EXPECT_TRUE(BitwiseEqual((*after)[i], (*before)[i])) << Print(actual);
}

TEST(HoistDevices, IsWhatTheDefinitionSaysOnRandomPrograms) {
  const DeviceConfiguration devices = Devices();
  size_t hoisted = 0;
  for (uint64_t seed = 0; seed < Rounds(200) && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const IRModule module = IRModule::FromMain(Annotated(seed));
    const HoistOptions options = OptionsOf(seed);
    const Found found(module, devices, options);
    const Definition definition(found, options);
    definition.EveryOperatorIsInOneRegionOfItsDevice();
    definition.NoTwoRegionsCouldBeOne();
    const IRModule result = found.Hoisted();
    ExpectAllIsHoisted(found, result, options);
    ExpectSameResults(result, module, RandomInputs(module.MainExpr(), seed));
    hoisted += found.regions[0].size();
  }
  EXPECT_GT(hoisted, Rounds(150));
}

TEST(HoistDevices, ControlFlowAndFunctionsComputeTheSame) {
  const DeviceConfiguration devices = Devices();
  size_t compared = 0;
  for (uint64_t seed = 0; seed < Rounds(200) && !HasFailure(); ++seed) {
    const std::string text = RandomDeviceProgram(seed, 8);
    // A function that calls itself whatever happens never ends.
    const std::string first = text.substr(0, text.find("def @twice"));
    if (first.find("@f(", 6) != std::string::npos || first.find("(@f,") != std::string::npos) continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    ParseOptions parse;
    parse.missing_constant = RandomConstants(1);
    const IRModule module = ParseModule(text, Operators(), parse).value().module;
    if (!DevicePlan::Create(module, devices).value().errors().empty()) continue;
    const HoistOptions options = OptionsOf(seed);
    const Found found(module, devices, options);
    const IRModule result = found.Hoisted();
    ExpectAllIsHoisted(found, result, options);
    std::vector<Tensor> inputs = RandomInputs(module.MainExpr(), seed);
    inputs[0] = Tensor::Scalar(false, DType::kBool);  // closures that call themselves end there
    ExpectSameResults(result, module, inputs);
    ++compared;
  }
  EXPECT_GT(compared, Rounds(30));
}

}  // namespace
}  // namespace collage
