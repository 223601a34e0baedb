#include "tools/on_demand.h"

#include "collage/driver/kept_profile.h"

namespace collage::tools {
namespace {

ReadyRun Ready(LoweredModel model, GatheredInputs inputs) {
  std::shared_ptr<const Remainder> remainder = model.remainders.empty() ? nullptr : model.remainders[inputs.profile];
  return {std::move(model.executable), std::move(remainder), std::move(inputs)};
}

Status CompileProfile(const std::string& model, CompileOptions options, const std::filesystem::path& kept) {
  options.output = kept;
  COLLAGE_TRY(CompileShown(model, std::move(options)));
  return {};
}

}  // namespace

Result<ReadyRun> PrepareRun(const ProgramOptions& program, const InputOptions& inputs) {
  const InputShapes asked = COLLAGE_TRY(AskedShapes(program));
  LoweredModel model = COLLAGE_TRY(LoadOrCompile(program));
  Result<GatheredInputs> gathered = GatherInputs(inputs, model.executable.shape_profiles(), asked);
  if (gathered || program.model.empty()) return Ready(std::move(model), COLLAGE_TRY(std::move(gathered)));
  const std::optional<InputShapes> shapes = COLLAGE_TRY(OtherShapes(inputs, model.executable.shape_profiles(), asked));
  if (!shapes) return tl::make_unexpected(std::move(gathered).error());
  CompileOptions options = COLLAGE_TRY(ToCompileOptions(program));
  options.profiles = {*shapes};
  const Result<std::filesystem::path> kept = KeptProfile(program.file, program.model, options);
  if (!kept) return Fail(kept.error().At("--compile-on-demand"));
  COLLAGE_TRY_STATUS(MakeKeptProfile(*kept, [&] { return CompileProfile(program.model, options, *kept); }));
  ProgramOptions of_profile = program;
  of_profile.file = *kept;
  model = COLLAGE_TRY(LoadOrCompile(of_profile));
  GatheredInputs tensors = COLLAGE_TRY(GatherInputs(inputs, model.executable.shape_profiles(), asked));
  return Ready(std::move(model), std::move(tensors));
}

}  // namespace collage::tools
