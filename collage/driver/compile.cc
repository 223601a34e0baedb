#include "collage/driver/compile.h"

#include "collage/cache/cache.h"
#include "collage/driver/compile_control.h"
#include "collage/driver/compile_function.h"
#include "collage/driver/compile_profiles.h"
#include "collage/driver/compile_rows.h"
#include "collage/driver/estimated_compile.h"
#include "collage/driver/model_checks.h"
#include "collage/driver/model_file.h"
#include "collage/driver/search_by_name.h"
#include "collage/explain/what_if_report.h"
#include "collage/lower/save.h"
#include "collage/support/file.h"
#include "collage/support/memory.h"
#include "collage/support/priority.h"
#include "collage/transform/inline_closures.h"
#include "collage/transform/outline_blocks.h"
#include "collage/transform/pass.h"

namespace collage {
namespace {

/// For each profile, so that an error in the last one's shapes costs no time.
Result<std::vector<OnnxModel>> ReadModels(const std::filesystem::path& path, const CompileOptions& options) {
  options.progress.Report({"reading", 0, 0, path.filename().string()});
  const ModelFile file = COLLAGE_TRY(ModelFile::Open(path, options.constants));
  std::vector<OnnxModel> models;
  for (const InputShapes& shapes : options.profiles) {
    ReadOptions read;
    read.input_shapes = shapes;
    read.may_cut = true;
    read.row_counts = RowCounts();
    models.push_back(COLLAGE_TRY(file.Read(read)));
  }
  COLLAGE_TRY_STATUS(CheckProfiles(models));
  return models;
}

Status CheckFolder(const std::filesystem::path& folder) {
  if (folder.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return error ? Fail(folder.string() + ": cannot be made: " + error.message()) : CheckWritable(folder / "x");
}

/// With no more threads on the host than processors that its other CPUs leave.
Result<CompileOptions> BesideCpus(CompileOptions options) {
  if (!options.cpus.empty()) options.threads = COLLAGE_TRY(ThreadsBeside(options.cpus, options.threads));
  return options;
}

}  // namespace

Result<PlacedFunction> PlaceFunction(const Expr& function, const CompileOptions& given) {
  const CompileOptions options = COLLAGE_TRY(BesideCpus(given));
  const Device device{DeviceKind::kCpu, 0, options.threads};
  COLLAGE_TRY(FindSearcher(options.search));
  std::vector<PlacementTarget> targets = COLLAGE_TRY(ResolveTargets(options.targets, device, options.choose_devices, options.cpus));
  if (options.estimator) {
    const EstimatedPlan planned = COLLAGE_TRY(PlanByEstimates(function, targets, options));
    return PlacedFunction{COLLAGE_TRY(Apply(*planned.placement, planned.plan)), Save(*planned.placement, planned.plan),
                          ReportOf(planned, options)};
  }
  MeasurementCache cache = COLLAGE_TRY(MeasurementCache::Open(options.cache));
  CompileOptions place = options;
  // A plan as text is a cover of the operators that the program has.
  place.constraints.forbid.emplace_back("forms");
  return PlaceByMeasuring(place, cache, std::move(targets), function);
}

Result<CompiledModel> CompileModel(const std::filesystem::path& path, const CompileOptions& given) {
  const CompileOptions options = COLLAGE_TRY(BesideCpus(given));
  const RaisedPriority priority(options.exclusive ? RaisedPriority::Reach::kSession : RaisedPriority::Reach::kProcess);
  const Device device{DeviceKind::kCpu, 0, options.threads};
  // Minutes of measuring should not end at a folder that is not there.
  if (!options.output.empty()) COLLAGE_TRY_STATUS(CheckWritable(options.output));
  COLLAGE_TRY_STATUS(CheckFolder(options.single_backends));
  COLLAGE_TRY(FindSearcher(options.search));
  if (options.precision && options.estimator)
    return Fail("a precision is permitted and prices are an estimator's, which says nothing of kernels of that precision");
  if (options.cache_only && options.tuning_seconds > 0) return Fail("time for tuning is given, and nothing may be measured");
  std::vector<PlacementTarget> targets = COLLAGE_TRY(ResolveTargets(options.targets, device, options.choose_devices, options.cpus));
  using Missing = MeasurementCache::Missing;
  MeasurementCache cache = COLLAGE_TRY(MeasurementCache::Open(options.cache, options.cache_only ? Missing::kFail : Missing::kCreate));
  std::vector<OnnxModel> models = COLLAGE_TRY(ReadModels(path, options));
  const ModelMetadata said = models.front().metadata;
  for (const OnnxModel& model : models) {
    if (Status fits = CheckMemory(model.module, FreeMemory()); !fits) return Fail(fits.error().At(path.string()));
  }
  const std::string name = path.filename().string();
  const auto place = [&](const CompileOptions& of_part, OnnxModel model, IRModule module) -> Result<CompiledModel> {
    std::vector<PlacementTarget> part_targets =
        of_part.targets == options.targets ? targets
                                           : COLLAGE_TRY(ResolveTargets(of_part.targets, device, options.choose_devices, options.cpus));
    if (of_part.estimator) return CompileByEstimates(std::move(model), module, part_targets, name, of_part);
    return CompileFunction(of_part, cache, std::move(part_targets), std::move(model), std::move(module), name);
  };
  const auto compile_block = [&](const Expr& block, const CompileOptions& of_block) {
    return place(of_block, {}, IRModule::FromMain(block));
  };
  const auto compile_head = [&](OnnxModel model, const CompileOptions& of_profile) -> Result<CompiledModel> {
    IRModule module = COLLAGE_TRY(RunPasses(COLLAGE_TRY(InlineClosures(model.module)), SafeGlobalPasses()));
    if (IsStraightLine(module)) return place(of_profile, std::move(model), std::move(module));
    return CompileControl(model, COLLAGE_TRY(OutlineBlocks(module)), name, of_profile, cache, compile_block);
  };
  RowPrograms rows;
  const auto compile = [&](OnnxModel model, const CompileOptions& of_profile) -> Result<CompiledModel> {
    if (!model.regions.empty()) return CompileRows(std::move(model), of_profile, compile_head, compile_block, rows);
    std::shared_ptr<const Remainder> remainder = model.remainder;
    CompiledModel compiled = COLLAGE_TRY(compile_head(std::move(model), of_profile));
    if (remainder != nullptr) compiled.lowered.remainders = {std::move(remainder)};
    return compiled;
  };
  CompiledModel compiled =
      COLLAGE_TRY(models.size() == 1 ? compile(std::move(models[0]), options) : CompileProfiles(std::move(models), name, options, compile));
  compiled.lowered = COLLAGE_TRY(AddRowPrograms(std::move(compiled.lowered), std::move(rows)));
  if (options.output.empty()) return compiled;
  options.progress.Report({"saving", 0, 0, options.output.string()});
  TrimHeap();
  compiled.metadata = WithModel(compiled.metadata, COLLAGE_TRY(ModelIdentity(path, options.constants)), said);
  COLLAGE_TRY_STATUS(SaveProgram(compiled.lowered, compiled.metadata, options.output));
  return compiled;
}

}  // namespace collage
