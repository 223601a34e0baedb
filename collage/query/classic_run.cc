#include "collage/query/classic_run.h"

#include <algorithm>
#include <array>

#include "collage/dataflow/extraction.h"
#include "collage/ir/verify.h"
#include "collage/partition/cover.h"
#include "collage/partition/fuse.h"
#include "collage/query/called_kernel.h"
#include "collage/query/sub_graph_json.h"

namespace collage {
namespace {

bool IsStructural(const Expr& expr) { return expr->As<Tuple>() || expr->As<TupleGetItem>(); }

void Append(Json names, Json& list) {
  if (list.is_null()) list = Json::array();
  for (Json& name : names) list.push_back(std::move(name));
}

Json CallsOf(const NamedFunction& function, const IndexSet& nodes) {
  IndexSet calls;
  nodes.ForEach([&](PostDfsIndex node) {
    if (function.graph()[node].expr->As<Call>()) calls.Add(node);
  });
  return function.NamesOf(calls);
}

IndexSet Together(const std::vector<BackendRegion>& regions) {
  IndexSet all;
  for (const BackendRegion& region : regions) all |= region.nodes;
  return all;
}

IndexSet Together(const std::vector<NestedSubGraph>& sub_graphs) {
  IndexSet all;
  for (const NestedSubGraph& one : sub_graphs) all |= one.sub_graph.inside();
  return all;
}

/// What either pass has found, each once, native's last.
std::vector<SupportedRegion> Together(std::vector<SupportedRegion> earlier, std::vector<SupportedRegion> found) {
  const auto is_known = [&](const SupportedRegion& region) {
    return std::any_of(earlier.begin(), earlier.end(), [&](const SupportedRegion& other) {
      return other.backend == region.backend && other.nodes == region.nodes && other.composite == region.composite;
    });
  };
  std::erase_if(found, is_known);
  earlier.insert(earlier.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  std::stable_sort(earlier.begin(), earlier.end(),
                   [](const SupportedRegion& a, const SupportedRegion& b) { return a.backend < b.backend; });
  return earlier;
}

/// Of regions that were merged again.
void KeepComposites(const std::vector<BackendRegion>& parts, std::vector<BackendRegion>& merged) {
  for (BackendRegion& region : merged) {
    if (!region.composites.empty()) continue;
    for (const BackendRegion& part : parts) {
      if (!part.nodes.IsSubsetOf(region.nodes)) continue;
      region.composites.insert(region.composites.end(), part.composites.begin(), part.composites.end());
    }
  }
}

std::vector<std::string> LabelsOf(const FunctionStages& stages) {
  std::vector<std::string> labels;
  const DataflowGraph& graph = stages.function->graph();
  for (PostDfsIndex node = 0; node < graph.size(); ++node) {
    const Function* literal = graph[node].expr->As<Function>();
    if (literal && literal->attributes.Has("Composite")) labels.push_back(TextOf(*literal, "Composite"));
  }
  return labels;
}

}  // namespace

Result<ClassicRun> ClassicRun::Start(const QueryProgram& program, const JsonReader& query, const std::vector<PassRequest>& passes) {
  ClassicRun run(program, query);
  const std::vector<std::string> ordinary = OrdinaryFunctions(program.module());
  for (const auto& function : program.functions()) {
    if (std::find(ordinary.begin(), ordinary.end(), function->name()) == ordinary.end()) continue;
    run.functions_.push_back({.function = function.get()});
  }
  for (const PassRequest& pass : passes) {
    if (pass.name != "merge-composite") continue;
    for (const PatternRule& rule : COLLAGE_TRY(PatternTableFrom(pass))) run.labels_.push_back(rule.label);
  }
  for (const FunctionStages& stages : run.functions_) {
    for (std::string& label : LabelsOf(stages)) run.labels_.push_back(std::move(label));
  }
  run.backends_ = COLLAGE_TRY(QueryBackends::ReadAll(passes, query, run.labels_));
  if (!query.Has("regions")) return run;
  const auto regions = COLLAGE_TRY(RegionsFrom(program, query, run.backends_));
  for (FunctionStages& stages : run.functions_) {
    const auto at = regions.find(stages.function);
    stages.regions = at == regions.end() ? std::vector<BackendRegion>() : at->second;
  }
  return run;
}

Result<Json> ClassicRun::Run(const PassRequest& pass) {
  using Stage = std::pair<const char*, Result<Json> (ClassicRun::*)(const PassRequest&)>;
  static constexpr std::array<Stage, 7> kStages = {{{"merge-composite", &ClassicRun::FindTheComposites},
                                                    {"annotate", &ClassicRun::AnnotateAll},
                                                    {"deconflict", &ClassicRun::DeconflictAll},
                                                    {"merge", &ClassicRun::MergeAll},
                                                    {"partition", &ClassicRun::PartitionAll},
                                                    {"fuse", &ClassicRun::FuseAll},
                                                    {"inline", &ClassicRun::InlineAll}}};
  const auto at = std::find_if(kStages.begin(), kStages.end(), [&](const Stage& stage) { return pass.name == stage.first; });
  return (this->*at->second)(pass);
}

Status ClassicRun::NeedSupported(const PassRequest& pass) {
  if (functions_.empty() || functions_.front().supported) return {};
  COLLAGE_TRY(AnnotateAll({"annotate", pass.places}));
  return {};
}

Status ClassicRun::NeedAssigned(const PassRequest& pass) {
  if (functions_.empty() || functions_.front().assigned) return {};
  if (functions_.front().regions && !query_.Has("assignment")) {
    for (FunctionStages& stages : functions_) {
      stages.assigned.emplace();
      for (const BackendRegion& region : *stages.regions) stages.assigned->push_back({region.backend, region.nodes, {}});
    }
    return {};
  }
  if (!query_.Has("assignment")) {
    COLLAGE_TRY(DeconflictAll({"deconflict", pass.places}));
    return {};
  }
  const NamedFunction* const assigned = COLLAGE_TRY(FunctionOfAssignment(*program_, query_));
  for (FunctionStages& stages : functions_) {
    stages.assigned.emplace();
    if (stages.function != assigned) continue;
    stages.assigned = COLLAGE_TRY(AssignmentFrom(*assigned, COLLAGE_TRY(query_.At("assignment")), backends_, stages.composites));
  }
  return {};
}

/// Regions that nobody has merged are those that were assigned.
Status ClassicRun::NeedRegions(const PassRequest& pass) {
  if (functions_.empty() || functions_.front().regions) return {};
  if (!functions_.front().assigned && !query_.Has("assignment")) {
    COLLAGE_TRY(MergeAll({"merge", pass.places}));
    return {};
  }
  COLLAGE_TRY_STATUS(NeedAssigned(pass));
  for (FunctionStages& stages : functions_) {
    stages.regions.emplace();
    for (const SupportedRegion& region : *stages.assigned) {
      BackendRegion alone{region.backend, region.nodes, {}};
      if (region.composite.Has("Composite")) {
        alone.composites.push_back({SubGraph(stages.function->graph(), region.nodes), region.composite});
      }
      stages.regions->push_back(std::move(alone));
    }
  }
  return {};
}

Json ClassicRun::RegionToJson(const NamedFunction& function, size_t backend, const SubGraph& sub_graph) const {
  Json entry = PartitionToJson(function, sub_graph);
  entry["backend"] = backends_.NameOf(backend);
  AddCalledComposites(function, sub_graph.inside(), entry["composites"]);
  return function.Tagged(std::move(entry));
}

void ClassicRun::AddCalledComposites(const NamedFunction& function, const IndexSet& inside, Json& composites) const {
  inside.ForEach([&](PostDfsIndex node) {
    const Function* kernel = CalledKernel(program_->module(), function.graph(), node);
    if (kernel && kernel->attributes.Has("Composite")) composites.push_back(CalledComposite(function, node, *kernel));
  });
}

Json ClassicRun::ToJson(const NamedFunction& function, const SupportedRegion& region) const {
  SubGraph sub_graph(function.graph(), region.nodes);
  if (!region.composite.Empty()) sub_graph = sub_graph.WithAttributes(function.graph(), region.composite);
  return RegionToJson(function, region.backend, sub_graph);
}

Result<Json> ClassicRun::FindTheComposites(const PassRequest& pass) {
  // One table after another is one longer table.
  for (PatternRule& rule : COLLAGE_TRY(PatternTableFrom(pass))) table_.push_back(std::move(rule));
  Json composites = Json::array();
  Json left = Json::array();
  for (FunctionStages& stages : functions_) {
    stages.composites = FindComposites(stages.function->graph(), table_);
    for (Json& composite : CompositesToJson(*stages.function, stages.composites)) {
      composites.push_back(stages.function->Tagged(std::move(composite)));
    }
    Append(stages.function->CallsOutside(Together(stages.composites)), left);
  }
  return Json{{"count", composites.size()}, {"composites", std::move(composites)}, {"left", std::move(left)}};
}

Result<Json> ClassicRun::AnnotateAll(const PassRequest& pass) {
  const QueryBackends asked = COLLAGE_TRY(QueryBackends::Read(pass, labels_));
  if (!asked.AnyAsked()) return pass.places.front().Wrong("annotate needs the field \"backends\", or \"supports\"");
  Json supported = Json::array();
  for (FunctionStages& stages : functions_) {
    std::vector<SupportedRegion> found = Annotate(stages.function->graph(), asked.Rules(), stages.composites);
    for (SupportedRegion& region : found) {
      region.backend = COLLAGE_TRY(backends_.PositionOf(asked.NameOf(region.backend), pass.places.front()));
    }
    stages.supported = Together(stages.supported ? std::move(*stages.supported) : std::vector<SupportedRegion>(), std::move(found));
    // What was decided before this pass has to be decided again.
    stages.assigned.reset();
    if (!query_.Has("regions")) stages.regions.reset();
    for (const SupportedRegion& region : *stages.supported) supported.push_back(ToJson(*stages.function, region));
  }
  return Json{{"count", supported.size()}, {"supported", std::move(supported)}};
}

Result<Json> ClassicRun::DeconflictAll(const PassRequest& pass) {
  COLLAGE_TRY_STATUS(NeedSupported(pass));
  const PreferRegion prefer = COLLAGE_TRY(PriorityFrom(pass, backends_));
  Json list = Json::array();
  Json structural = Json::array();
  Json assignment = Json::object();
  for (FunctionStages& stages : functions_) {
    const DataflowGraph& graph = stages.function->graph();
    stages.assigned = Deconflict(graph, *stages.supported, backends_.native(), prefer);
    stages.regions.reset();
    IndexSet taken;
    for (const SupportedRegion& region : *stages.assigned) {
      list.push_back(ToJson(*stages.function, region));
      Append(CallsOf(*stages.function, region.nodes), assignment[backends_.NameOf(region.backend)]);
      taken |= region.nodes;
    }
    std::vector<PostDfsIndex> free;
    for (PostDfsIndex node = 0; node < graph.size(); ++node) {
      if (IsStructural(graph[node].expr) && !taken.Contains(node)) free.push_back(node);
    }
    Append(stages.function->NamesOf(std::span<const PostDfsIndex>(free)), structural);
  }
  return Json{
      {"count", list.size()}, {"assigned", std::move(list)}, {"structural", std::move(structural)}, {"assignment", std::move(assignment)}};
}

Result<Json> ClassicRun::MergeAll(const PassRequest& pass) {
  COLLAGE_TRY_STATUS(NeedAssigned(pass));
  Json regions = Json::array();
  for (FunctionStages& stages : functions_) {
    const DataflowGraph& graph = stages.function->graph();
    std::vector<BackendRegion> merged = MergeAssigned(graph, *stages.assigned, backends_.native());
    if (stages.regions) KeepComposites(*stages.regions, merged);
    stages.regions = std::move(merged);
    for (const BackendRegion& region : *stages.regions) {
      regions.push_back(RegionToJson(*stages.function, region.backend, SubGraph(graph, region.nodes, region.composites)));
    }
  }
  return Json{{"count", regions.size()}, {"regions", std::move(regions)}};
}

Result<Json> ClassicRun::PartitionEntry(const NamedFunction& function, const BackendRegion& region, bool bind_constants) const {
  const DataflowGraph& graph = function.graph();
  const SubGraph bare(graph, region.nodes, region.composites);
  const std::string& backend = backends_.NameOf(region.backend);
  if (const auto broken = bare.Violations(graph, {.allow_taps = true}); !broken.empty()) {
    return Fail("the region " + function.NamesOf(region.nodes).dump() + " of \"" + backend + "\" can be no function: it breaks " +
                std::string(Name(broken[0])));
  }
  const SubGraph partition = bare.WithAttributes(graph, {{"Primitive", AttributeValue(1)}, {"Compiler", backend}});
  const ExtractedFunction extracted = COLLAGE_TRY(ExtractFunction(graph, partition, {.bind_constants = bind_constants}));
  Json entry = FunctionToJson(function, partition, extracted);
  AddCalledComposites(function, region.nodes, entry["composites"]);
  return function.Tagged(std::move(entry));
}

Result<Json> ClassicRun::PartitionAll(const PassRequest& pass) {
  COLLAGE_TRY_STATUS(NeedRegions(pass));
  if (const auto bind = pass.Find("bind_constants")) bind_constants_ = COLLAGE_TRY(bind->Bool());
  Json partitions = Json::array();
  Json left = Json::array();
  std::vector<FunctionRegions> regions;
  for (FunctionStages& stages : functions_) {
    stages.partitions = *stages.regions;
    std::erase_if(stages.partitions, [&](const BackendRegion& region) { return region.backend == backends_.native(); });
    IndexSet inside;
    for (const BackendRegion& region : stages.partitions) {
      if (inside.Intersects(region.nodes)) {
        return Fail("two regions share " + stages.function->NamesOf(inside & region.nodes).dump() + ", expected disjoint ones");
      }
      inside |= region.nodes;
      partitions.push_back(COLLAGE_TRY(PartitionEntry(*stages.function, region, bind_constants_)));
    }
    Append(stages.function->CallsOutside(inside), left);
    regions.push_back({stages.function->name(), &stages.function->graph(), stages.partitions});
  }
  module_ = COLLAGE_TRY(PartitionRegions(program_->module(), regions, backends_.names(), {.bind_constants = bind_constants_}));
  COLLAGE_TRY_STATUS(Verify(module_));
  return Json{{"count", partitions.size()}, {"partitions", std::move(partitions)}, {"left_in_place", std::move(left)}};
}

Result<Json> ClassicRun::FuseAll(const PassRequest& pass) {
  FuseOptions options;
  if (const auto level = pass.Find("level")) options.level = COLLAGE_TRY(level->Count()) == 0 ? 0 : 1;
  if (const auto most = pass.Find("max_operators")) options.max_operators = COLLAGE_TRY(most->Count());
  if (options.max_operators == 0) options.max_operators = static_cast<size_t>(-1);
  Json groups = Json::array();
  Json left = Json::array();
  for (const FunctionStages& stages : functions_) {
    const NamedFunction& function = *stages.function;
    const IndexSet kernels = Together(stages.composites) | Together(stages.partitions);
    std::vector<bool> may_fuse(function.graph().size(), true);
    kernels.ForEach([&](PostDfsIndex node) { may_fuse[node] = false; });
    IndexSet inside = kernels;
    for (const IndexSet& group : FindFusionGroups(function.graph(), may_fuse, options)) {
      const SubGraph sub_graph(function.graph(), group);
      groups.push_back(function.Tagged({{"members", function.NamesOf(group)},
                                        {"operators", OperatorsToJson(function, group)},
                                        {"inputs", InputsToJson(function, sub_graph)},
                                        {"result", OneOrAll(function.NamesOf(sub_graph.exit()))}}));
      inside |= group;
    }
    Append(function.CallsOutside(inside), left);
  }
  return Json{{"count", groups.size()}, {"groups", std::move(groups)}, {"left", std::move(left)}};
}

Result<Json> ClassicRun::InlineAll(const PassRequest& pass) {
  std::vector<std::string> wanted;
  if (const auto backends = pass.Find("backends")) {
    for (const JsonReader& name : backends->ItemsOrSelf()) wanted.push_back(COLLAGE_TRY(name.String()));
  }
  const auto goes = [&](const std::string& backend) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), backend) != wanted.end();
  };
  module_ = COLLAGE_TRY(InlinePartitions(module_, wanted));
  COLLAGE_TRY_STATUS(Verify(module_));
  Json partitions = Json::array();
  Json left = Json::array();
  for (FunctionStages& stages : functions_) {
    const NamedFunction& function = *stages.function;
    std::erase_if(stages.partitions, [&](const BackendRegion& region) { return goes(backends_.NameOf(region.backend)); });
    for (const BackendRegion& region : stages.partitions) {
      partitions.push_back(COLLAGE_TRY(PartitionEntry(function, region, bind_constants_)));
    }
    IndexSet inside = Together(stages.partitions);
    for (PostDfsIndex node = 0; node < function.graph().size(); ++node) {
      const Function* kernel = CalledKernel(program_->module(), function.graph(), node);
      if (!kernel || !kernel->attributes.Has("Primitive") || inside.Contains(node)) continue;
      const std::string compiler = TextOf(*kernel, "Compiler");
      if (goes(compiler.empty() ? "native" : compiler)) continue;
      Json entry = PartitionToJson(function, SubGraph(function.graph(), IndexSet({node})));
      entry["backend"] = compiler.empty() ? "native" : compiler;
      partitions.push_back(function.Tagged(std::move(entry)));
      inside.Add(node);
    }
    Append(function.CallsOutside(inside), left);
  }
  return Json{{"count", partitions.size()}, {"partitions", std::move(partitions)}, {"left_in_place", std::move(left)}};
}

}  // namespace collage
