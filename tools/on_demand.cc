#include "tools/on_demand.h"

#include <spdlog/fmt/fmt.h>

#include "collage/driver/model_identity.h"
#include "collage/explain/what_if_report.h"
#include "collage/lower/save.h"
#include "collage/support/file_lock.h"
#include "collage/support/hash.h"

namespace collage::tools {
namespace {

namespace fs = std::filesystem;

/// The model must be the one that the file was made of: what is kept answers for that file.
Result<std::string> IdentityOfBoth(const ProgramOptions& program) {
  const std::string of_model = COLLAGE_TRY(ModelIdentity(program.model));
  const std::string of_file = COLLAGE_TRY(ModelIdentityOfMetadata(COLLAGE_TRY(ReadProgramMetadata(program.file))));
  if (of_file.empty()) return Fail(program.file + ": does not say which model it was compiled from; compile it again");
  if (of_file != of_model)
    return Fail("--compile-on-demand " + program.model + ": is not the model that " + program.file + " was compiled from");
  return of_model;
}

/// One file for each model, shapes of its inputs and number of threads.
fs::path KeptFile(const ProgramOptions& program, const std::string& identity, const InputShapes& shapes) {
  uint64_t key = HashBytes(identity + " " + std::to_string(program.threads));
  for (const auto& [name, shape] : shapes) key = HashBytes(name + "=" + ToString(shape) + ";", key);
  return fs::path(program.file + ".profiles") / fmt::format("{:016x}.collage", key);
}

Status CompileProfile(const ProgramOptions& program, const InputShapes& shapes, const fs::path& kept) {
  std::error_code error;
  fs::create_directories(kept.parent_path(), error);
  if (error) return Fail(kept.parent_path().string() + ": cannot be made: " + error.message());
  const FileLock lock = COLLAGE_TRY(FileLock::Wait(fs::path(kept).replace_extension(".lock")));
  if (fs::exists(kept)) return {};  // by another process, while this one waited
  ProgramOptions model = program;
  model.file = program.model;
  CompileOptions options = COLLAGE_TRY(ToCompileOptions(model));
  options.profiles = {shapes};
  options.output = kept;
  COLLAGE_TRY(CompileShown(model.file, options));
  return {};
}

}  // namespace

Result<ReadyRun> PrepareRun(const ProgramOptions& program, const InputOptions& inputs) {
  const InputShapes asked = COLLAGE_TRY(AskedShapes(program));
  LoweredModel model = COLLAGE_TRY(LoadOrCompile(program));
  Result<GatheredInputs> gathered = GatherInputs(inputs, model.executable.shape_profiles(), asked);
  if (gathered || program.model.empty()) return ReadyRun{std::move(model.executable), model.remainder, COLLAGE_TRY(std::move(gathered))};
  const std::optional<InputShapes> shapes = COLLAGE_TRY(OtherShapes(inputs, model.executable.shape_profiles(), asked));
  if (!shapes) return tl::make_unexpected(std::move(gathered).error());
  const fs::path kept = KeptFile(program, COLLAGE_TRY(IdentityOfBoth(program)), *shapes);
  if (!fs::exists(kept)) COLLAGE_TRY_STATUS(CompileProfile(program, *shapes, kept));
  ProgramOptions of_profile = program;
  of_profile.file = kept;
  model = COLLAGE_TRY(LoadOrCompile(of_profile));
  GatheredInputs tensors = COLLAGE_TRY(GatherInputs(inputs, model.executable.shape_profiles(), asked));
  return ReadyRun{std::move(model.executable), model.remainder, std::move(tensors)};
}

}  // namespace collage::tools
