#include "tools/report_page.h"

#include <filesystem>
#include <vector>

#include "collage/cost/statistics.h"
#include "collage/explain/page.h"
#include "collage/explain/what_if_report.h"
#include "collage/lower/save.h"
#include "collage/support/clock.h"
#include "tools/inputs.h"
#include "tools/ran_steps.h"

namespace collage::tools {
namespace {

// The first runs touch memory for the first time; the middle one of the others stands for a usual run.
constexpr int kWarmUpRuns = 3;
constexpr int kTimedRuns = 5;

std::vector<RunStep> StepsOf(const Executable& executable) {
  const std::vector<const StepProfile*> ran = RanSteps(executable);
  std::vector<RunStep> steps;
  for (const StepProfile* step : ran) {
    steps.push_back(
        {step->kind, step->record.name, ToString(step->device), BeganAfterMicroseconds(*ran.front(), *step), step->last_microseconds});
  }
  return steps;
}

Status RunProfile(Executable& executable, const ShapeProfile& shapes, PageProfile& page) {
  const InputOptions any = {{}, {}, 1};
  const GatheredInputs inputs = COLLAGE_TRY(GatherInputs(any, {shapes}));
  std::vector<Tensor> outputs;
  for (const NamedType& output : shapes.outputs) outputs.emplace_back(output.type);
  std::vector<double> times_us;
  for (int i = 0; i < kWarmUpRuns + kTimedRuns; ++i) {
    const Clock::time_point start = Clock::now();
    COLLAGE_TRY_STATUS(executable.Run(inputs.tensors, outputs));
    if (i >= kWarmUpRuns) times_us.push_back(Clock::SecondsSince(start) * 1e6);
  }
  executable.SetProfiling(true);
  const Status ran = executable.Run(inputs.tensors, outputs);
  executable.SetProfiling(false);
  COLLAGE_TRY_STATUS(ran);
  page.run_us = Percentile(times_us, 0.5);
  page.steps = StepsOf(executable);
  return {};
}

Status RunProfiles(const std::string& file, std::vector<PageProfile>& pages) {
  const Device device = COLLAGE_TRY(ReadProgramInfo(file)).device;
  LoweredModel model = COLLAGE_TRY(LoadProgram(file, device));
  const std::vector<ShapeProfile> profiles = model.executable.shape_profiles();
  if (profiles.size() != pages.size()) return Fail("the program and its report have different profiles");
  for (size_t i = 0; i < pages.size(); ++i) {
    const Status ran = RunProfile(model.executable, profiles[i], pages[i]);
    if (!ran) pages[i].why_not_run = ran.error().message;
  }
  return {};
}

}  // namespace

Result<std::string> PageOf(const std::string& file, const std::string& metadata, bool run) {
  std::vector<PageProfile> pages;
  for (std::string& profile : COLLAGE_TRY(MetadataOfProfiles(metadata))) pages.push_back({std::move(profile)});
  const Status ran = run ? RunProfiles(file, pages) : Fail("--predicted asked for no run");
  for (PageProfile& page : pages) {
    if (!ran) page.why_not_run = ran.error().message;
  }
  return ReportPage(std::filesystem::path(file).filename().string(), pages);
}

}  // namespace collage::tools
