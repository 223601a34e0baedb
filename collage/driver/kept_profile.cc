#include "collage/driver/kept_profile.h"

#include <spdlog/fmt/fmt.h>

#include "collage/driver/model_file.h"
#include "collage/explain/what_if_report.h"
#include "collage/lower/save.h"
#include "collage/support/file_lock.h"
#include "collage/support/hash.h"

namespace collage {

namespace fs = std::filesystem;

Result<fs::path> KeptProfile(const std::string& program, const std::string& model, const CompileOptions& options) {
  const std::string of_model = COLLAGE_TRY(ModelIdentity(model, options.constants));
  const std::string of_file = COLLAGE_TRY(ModelIdentityOfMetadata(COLLAGE_TRY(ReadProgramMetadata(program))));
  if (of_file.empty()) return Fail(program + ": does not say which model it was compiled from; compile it again");
  if (of_file != of_model) return Fail(model + ": is not the model that " + program + " was compiled from");
  uint64_t key = HashBytes(of_model + " " + std::to_string(options.threads));
  for (const auto& [name, shape] : options.profiles.front()) key = HashBytes(name + "=" + ToString(shape) + ";", key);
  return fs::path(program + ".profiles") / fmt::format("{:016x}.collage", key);
}

Status MakeKeptProfile(const fs::path& kept, const std::function<Status()>& compile) {
  if (fs::exists(kept)) return {};
  std::error_code error;
  fs::create_directories(kept.parent_path(), error);
  if (error) return Fail(kept.parent_path().string() + ": cannot be made: " + error.message());
  const FileLock lock = COLLAGE_TRY(FileLock::Wait(fs::path(kept).replace_extension(".lock")));
  if (fs::exists(kept)) return {};  // by another process, while this one waited
  return compile();
}

}  // namespace collage
