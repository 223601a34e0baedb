#include "collage/driver/compile.h"

#include <algorithm>

#include "collage/cost/cache.h"
#include "collage/driver/placement.h"
#include "collage/driver/race.h"
#include "collage/ir/verify.h"
#include "collage/onnx/reader.h"
#include "collage/support/log.h"
#include "collage/transform/pipeline.h"

namespace collage {
namespace {

Result<OnnxModel> ReadModel(const std::filesystem::path& path, const CompileOptions& options) {
  options.progress.Report({"reading", 0, 0, path.filename().string()});
  return ReadOnnxFile(path, {options.input_shapes, {}});
}

void AddEndpoints(const OnnxModel& model, LowerOptions& lower) {
  lower.input_names = model.input_names;
  lower.output_names = model.output_names;
}

}  // namespace

Result<CompiledModel> CompileModel(const std::filesystem::path& path, const CompileOptions& options) {
  const Device device{DeviceKind::kCpu, 0, options.threads};
  const std::vector<PlacementTarget> targets = COLLAGE_TRY(ResolveTargets(options.targets, device));
  MeasurementCache cache = COLLAGE_TRY(MeasurementCache::Open(options.cache));

  OnnxModel model = COLLAGE_TRY(ReadModel(path, options));
  const IRModule module = COLLAGE_TRY(RunSafeGlobalPasses(std::move(model.module)));

  Pricer pricer(device, cache, options.measure);
  Placement placement = COLLAGE_TRY(Placement::Create(module.MainExpr(), targets, pricer, options.progress));
  const Plan searched = COLLAGE_TRY(placement.Search());
  std::vector<Plan> contestants = COLLAGE_TRY(placement.SingleBackendPlans());
  contestants.insert(contestants.begin(), searched);

  LowerOptions lower = placement.LoweringOptions();
  AddEndpoints(model, lower);
  RaceOutcome outcome = COLLAGE_TRY(RacePlans(placement, contestants, lower, options));

  CompiledModel compiled{std::move(outcome.executable), COLLAGE_TRY(placement.Report(contestants[outcome.winner]))};
  compiled.report.model = path.filename().string();
  compiled.report.end_to_end = std::move(outcome.timings);
  compiled.report.winner = outcome.winner == 0 ? "searched" : contestants[outcome.winner].name;
  compiled.report.noise = outcome.noise;
  compiled.report.raced = outcome.raced;
  compiled.report.candidates = placement.Counts();
  if (!options.output.empty()) {
    options.progress.Report({"saving", 0, 0, options.output.string()});
    COLLAGE_TRY_STATUS(SaveProgram(outcome.partitioned, lower, ToJson(compiled.report), options.output));
  }
  return compiled;
}

}  // namespace collage
