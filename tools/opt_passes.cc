#include "tools/opt_passes.h"

#include <algorithm>
#include <cstdio>

#include "collage/ir/verify.h"
#include "collage/ir/visit.h"
#include "collage/op/table.h"
#include "collage/partition/cover.h"
#include "collage/partition/fuse.h"
#include "collage/partition/hoist_devices.h"
#include "collage/support/file.h"
#include "collage/transform/function_pass.h"
#include "collage/transform/inline_closures.h"
#include "collage/transform/outline_blocks.h"
#include "collage/transform/pass.h"

namespace collage::tools {
namespace {

std::string NameOf(const PlacementTarget& target) { return std::string(target.backend->Name()); }
bool IsNative(const PlacementTarget& target) { return target.rules.style == BackendRules::Style::kNative; }

/// An ordinary function that @main calls; empty where there is none.
std::string CalledByMain(const IRModule& module) {
  std::string called;
  PostOrder(module.MainExpr(), [&](const Expr& expr) {
    const GlobalVar* global = expr->As<GlobalVar>();
    if (global && module.Find(global->name) && MayEnter(module.Find(global->name))) called = global->name;
  });
  return called;
}

}  // namespace

Result<OptRun> OptRun::Create(IRModule module, std::vector<std::string> targets, CompileOptions compile) {
  OptRun run;
  const Device device{DeviceKind::kCpu, 0, compile.threads};
  for (PlacementTarget& target : COLLAGE_TRY(ResolveTargets(targets, device))) {
    if (!target.is_fallback || !targets.empty()) run.targets_.push_back(std::move(target));
  }
  // The fallback takes part only where it is named.
  std::erase_if(run.targets_, [&](const PlacementTarget& target) {
    return target.is_fallback && std::find(targets.begin(), targets.end(), target.target) == targets.end();
  });
  run.present_ = COLLAGE_TRY(ResolveTargets({}, device));
  run.module_ = std::move(module);
  run.devices_ = COLLAGE_TRY(DeviceConfiguration::Create({COLLAGE_TRY(ParseListedDevice("cpu:0"))}, std::nullopt, std::nullopt));
  run.target_texts_ = std::move(targets);
  run.compile_ = std::move(compile);
  return run;
}

std::vector<NamedRules> OptRun::LibrariesAndCompilers() const {
  std::vector<NamedRules> backends;
  for (const PlacementTarget& target : targets_) {
    if (!IsNative(target)) backends.push_back({NameOf(target), &target.rules});
  }
  return backends;
}

std::vector<std::string> OptRun::BackendNames() const {
  std::vector<std::string> names;
  for (const NamedRules& backend : LibrariesAndCompilers()) names.push_back(backend.name);
  return names;
}

std::vector<OptRun::Entry> OptRun::Passes() {
  std::vector<Entry> passes;
  for (const Pass& pass : SafeGlobalPasses()) {
    passes.push_back({pass.name, [this, pass] { return Accept(pass.run(module_)); }});
  }
  passes.push_back({"verify", [this] { return Verify(module_); }});
  passes.push_back({"merge-composite", [this] { return MergeComposites(); }});
  passes.push_back({"annotate", [this] { return Annotate(); }});
  passes.push_back({"deconflict", [this] { return Deconflict(); }});
  passes.push_back({"merge", [this] { return Merge(); }});
  passes.push_back({"partition", [this] { return Partition(); }});
  passes.push_back({"inline-closures", [this] { return Accept(InlineClosures(module_)); }});
  passes.push_back({"outline-blocks", [this] { return Accept(OutlineBlocks(module_)); }});
  passes.push_back({"fuse", [this] { return Accept(FuseOperators(module_)); }});
  passes.push_back({"inline", [this] {
                      std::vector<std::string> names;
                      for (const PlacementTarget& target : targets_) names.push_back(NameOf(target));
                      return Accept(InlinePartitions(module_, target_texts_.empty() ? std::vector<std::string>() : names));
                    }});
  for (const PlacementTarget& target : present_) {
    passes.push_back({"partition-for-" + NameOf(target), [this, &target] { return PartitionFor(NameOf(target), target.rules); }});
  }
  for (const PlacementTarget& target : present_) {
    passes.push_back({"optimize-for-" + NameOf(target), [this, &target] { return OptimizeFor(NameOf(target), target.rules); }});
  }
  passes.push_back({"plan-devices", [this] { return Accept(PlanDevices(module_, *devices_, Operators())); }});
  passes.push_back({"hoist-devices", [this] { return Accept(HoistDevices(module_, *devices_, {}, Operators())); }});
  passes.push_back({"collage", [this] { return Place(); }});
  passes.push_back({"apply-plan", [this] { return ApplyPlan(); }});
  return passes;
}

std::vector<std::string> OptRun::PassNames() const {
  std::vector<std::string> names;
  for (const Entry& pass : const_cast<OptRun*>(this)->Passes()) names.push_back(pass.name);
  return names;
}

Status OptRun::Run(const std::string& pass) {
  for (const Entry& entry : Passes()) {
    if (entry.name != pass) continue;
    gives_data_ = false;
    const Status status = entry.run();
    return status ? status : Fail(status.error().At("pass " + pass));
  }
  return Fail("there is no pass '" + pass + "'");
}

Status OptRun::Accept(Result<IRModule> changed) {
  if (!changed) return Fail(std::move(changed).error());
  if (Status verified = Verify(*changed); !verified) return Fail(verified.error().At("what it made is not valid"));
  module_ = *std::move(changed);
  functions_.clear();
  return {};
}

Status OptRun::MergeComposites() {
  std::vector<PatternRule> table;
  for (const PlacementTarget& target : targets_) {
    table.insert(table.end(), target.rules.patterns.begin(), target.rules.patterns.end());
  }
  IRModule merged = module_;
  for (const std::string& name : OrdinaryFunctions(module_)) {
    merged.Set(name, COLLAGE_TRY(MergeComposite(module_.Find(name), table)));
  }
  return Accept(std::move(merged));
}

Status OptRun::Annotate() {
  functions_.clear();
  const std::vector<NamedRules> backends = LibrariesAndCompilers();
  for (const std::string& name : OrdinaryFunctions(module_)) {
    FunctionData& function = functions_.emplace_back();
    function.name = name;
    function.graph = std::make_unique<DataflowGraph>(module_.Find(name));
    function.supported = collage::Annotate(*function.graph, backends);
  }
  stage_ = DataStage::kSupported;
  gives_data_ = true;
  return {};
}

Status OptRun::Deconflict() {
  if (functions_.empty()) COLLAGE_TRY_STATUS(Annotate());
  const std::vector<NamedRules> backends = LibrariesAndCompilers();
  std::vector<std::string> priority;
  // Without --target nobody has ranked the native backend, which supports everything.
  for (const PlacementTarget& target : targets_) {
    if (!target_texts_.empty() || !IsNative(target)) priority.push_back(NameOf(target));
  }
  for (FunctionData& function : functions_) {
    function.assigned = collage::Deconflict(*function.graph, *function.supported, backends.size(), PreferInOrder(priority, backends));
  }
  stage_ = DataStage::kAssigned;
  gives_data_ = true;
  return {};
}

Status OptRun::Merge() {
  if (functions_.empty() || !functions_.front().assigned) COLLAGE_TRY_STATUS(Deconflict());
  for (FunctionData& function : functions_) {
    function.regions = MergeAssigned(*function.graph, *function.assigned, LibrariesAndCompilers().size());
  }
  stage_ = DataStage::kRegions;
  gives_data_ = true;
  return {};
}

Status OptRun::Partition() {
  if (functions_.empty() || !functions_.front().regions) COLLAGE_TRY_STATUS(Merge());
  gives_data_ = false;
  std::vector<FunctionRegions> regions;
  for (const FunctionData& function : functions_) regions.push_back({function.name, function.graph.get(), *function.regions});
  return Accept(RunPartitionPasses(COLLAGE_TRY(PartitionRegions(module_, regions, BackendNames())), LibrariesAndCompilers()));
}

Status OptRun::PartitionFor(const std::string& backend, const BackendRules& rules) {
  // Native code generation leaves nothing behind: its partitions are the groups of operator fusion.
  if (rules.style == BackendRules::Style::kNative) return Accept(FuseOperators(module_, {.bind_constants = true}));
  return Accept(PartitionClassic(module_, {{backend, &rules}}));
}

Status OptRun::OptimizeFor(const std::string& backend, const BackendRules& rules) {
  if (!rules.optimize && rules.passes.empty()) {
    std::fprintf(stderr, "collage: optimize-for-%s: this backend rewrites what it is given itself; nothing changed\n", backend.c_str());
    return {};
  }
  IRModule optimized = module_;
  for (const std::string& name : rules.passes) {
    const std::vector<Pass> passes = SafeGlobalPasses();
    const auto pass = std::find_if(passes.begin(), passes.end(), [&](const Pass& one) { return one.name == name; });
    if (pass == passes.end()) return Fail("the backend names a pass '" + name + "', which there is not");
    optimized = COLLAGE_TRY(RunPasses(std::move(optimized), {*pass}));
  }
  for (const std::string& name : OrdinaryFunctions(optimized)) {
    if (rules.optimize) optimized.Set(name, COLLAGE_TRY(rules.optimize(optimized.Find(name))));
  }
  return Accept(std::move(optimized));
}

Status OptRun::Place() {
  if (!module_.Find("main")) return Fail("the program has no @main");
  if (const std::string called = CalledByMain(module_); !called.empty())
    return Fail("@main calls @" + called + ", and this pass places one function; collage compile places such a program block by block, " +
                "which the pass outline-blocks shows");
  CompileOptions compile = compile_;
  compile.targets = target_texts_;
  const PlacedFunction placed = COLLAGE_TRY(PlaceFunction(module_.MainExpr(), compile));
  if (!plan_written_.empty()) COLLAGE_TRY_STATUS(WriteFileAtomically(plan_written_, placed.plan + "\n"));
  IRModule result = module_;
  result.Set("main", placed.module.MainExpr());
  return Accept(std::move(result));
}

Status OptRun::ApplyPlan() {
  if (plan_read_.empty()) return Fail("there is no plan to apply; name its file with --plan");
  if (!module_.Find("main")) return Fail("the program has no @main");
  const std::string text = COLLAGE_TRY(ReadFile(plan_read_));
  const DataflowGraph graph(module_.MainExpr());
  Result<Cover> cover = LoadPlan(graph, text);
  if (!cover) return Fail(cover.error().At(plan_read_));
  return Accept(ApplyCover(module_, graph, *cover));
}

nlohmann::ordered_json OptRun::Data(const std::string& program) const {
  return ToJson(functions_, stage_, module_, program, BackendNames());
}

}  // namespace collage::tools
