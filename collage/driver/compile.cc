#include "collage/driver/compile.h"

#include "collage/cost/cache.h"
#include "collage/driver/placement.h"
#include "collage/driver/race.h"
#include "collage/lower/save.h"
#include "collage/onnx/reader.h"
#include "collage/transform/pass.h"

namespace collage {
namespace {

Result<OnnxModel> ReadModel(const std::filesystem::path& path, const CompileOptions& options) {
  options.progress.Report({"reading", 0, 0, path.filename().string()});
  return ReadOnnxFile(path, {options.input_shapes, {}});
}

}  // namespace

Result<CompiledModel> CompileModel(const std::filesystem::path& path, const CompileOptions& options) {
  const Device device{DeviceKind::kCpu, 0, options.threads};
  const std::vector<PlacementTarget> targets = COLLAGE_TRY(ResolveTargets(options.targets, device));
  MeasurementCache cache = COLLAGE_TRY(MeasurementCache::Open(options.cache));

  OnnxModel model = COLLAGE_TRY(ReadModel(path, options));
  const IRModule module = COLLAGE_TRY(RunPasses(std::move(model.module), SafeGlobalPasses()));

  Pricer pricer(device, cache, options.measure);
  Placement placement = COLLAGE_TRY(Placement::Create(module.MainExpr(), targets, pricer, options.progress));
  const Plan searched = COLLAGE_TRY(placement.Search());
  std::vector<Plan> contestants = COLLAGE_TRY(placement.SingleBackendPlans());
  contestants.insert(contestants.begin(), searched);

  LowerOptions lower = placement.LoweringOptions();
  lower.program.input_names = model.input_names;
  lower.program.output_names = model.output_names;
  RaceOutcome outcome = COLLAGE_TRY(RacePlans(placement, contestants, lower, options));

  CompiledModel compiled{std::move(outcome.lowered.executable), COLLAGE_TRY(placement.Report(contestants[outcome.winner]))};
  compiled.report.model = path.filename().string();
  compiled.report.end_to_end = std::move(outcome.timings);
  compiled.report.winner = outcome.winner == 0 ? "searched" : contestants[outcome.winner].name;
  compiled.report.noise = outcome.noise;
  compiled.report.raced = outcome.raced;
  compiled.report.candidates = placement.Counts();
  if (!options.output.empty()) {
    options.progress.Report({"saving", 0, 0, options.output.string()});
    COLLAGE_TRY_STATUS(SaveProgram(outcome.lowered.program, ToJson(compiled.report), options.output.string()));
  }
  return compiled;
}

}  // namespace collage
