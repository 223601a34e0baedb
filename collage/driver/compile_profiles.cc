#include "collage/driver/compile_profiles.h"

#include <algorithm>

#include "collage/driver/control_report.h"
#include "collage/explain/what_if_report.h"
#include "collage/lower/profiles.h"

namespace collage {
namespace {

ShapeProfile ProfileOf(const OnnxModel& model) {
  ShapeProfile profile;
  const std::vector<Expr>& parameters = model.module.Main().parameters;
  for (size_t i = 0; i < parameters.size(); ++i) profile.inputs.push_back({model.input_names[i], *parameters[i]->type().AsTensor()});
  return profile;
}

}  // namespace

Status CheckProfiles(const std::vector<OnnxModel>& models) {
  std::vector<std::string> seen;
  for (const OnnxModel& model : models) {
    const std::string profile = ToString(ProfileOf(model));
    if (std::find(seen.begin(), seen.end(), profile) != seen.end())
      return Fail("--shape: two profiles are the same, " + profile + "; give each shape once");
    seen.push_back(profile);
  }
  return {};
}

Result<CompiledModel> CompileProfiles(std::vector<OnnxModel> models, const std::string& name, const CompileOptions& options,
                                      const CompileShapes& compile) {
  if (!options.single_backends.empty())
    return Fail("--single-backends: give one --shape for each input; plans of single backends have one profile");
  const Clock::time_point start = Clock::now();
  CompileReport report;
  report.model = name;
  report.threads = options.threads;
  report.budget_seconds = options.budget_seconds;
  std::vector<LoweredModel> profiles;
  std::vector<std::string> metadata;
  for (size_t i = 0; i < models.size(); ++i) {
    const std::string profile = ToString(ProfileOf(models[i]));
    CompileOptions of_profile = options;
    of_profile.seconds_spent = 0;
    of_profile.whole_budget_seconds = options.WholeBudget();
    const double left = std::max(0.0, options.budget_seconds - options.seconds_spent - Clock::SecondsSince(start));
    of_profile.budget_seconds = left / static_cast<double>(models.size() - i);
    of_profile.race_seconds = options.race_seconds / static_cast<double>(models.size());
    of_profile.tuning_seconds = options.tuning_seconds / static_cast<double>(models.size());
    options.progress.Report({"profile", i + 1, models.size(), profile});
    Result<CompiledModel> compiled = compile(std::move(models[i]), of_profile);
    if (!compiled) return Fail(compiled.error().At("profile " + profile));
    profiles.push_back(std::move(compiled->lowered));
    metadata.push_back(std::move(compiled->metadata));
    AddCounts(compiled->report.candidates, report.candidates);
    report.profiles.push_back(std::move(compiled->report));
  }
  LoweredModel whole = COLLAGE_TRY(JoinProfiles(std::move(profiles)));
  report.elapsed_seconds = options.seconds_spent + Clock::SecondsSince(start);
  return CompiledModel{std::move(whole), std::move(report), JoinMetadata(metadata)};
}

}  // namespace collage
