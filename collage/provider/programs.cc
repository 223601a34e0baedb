#include "collage/provider/programs.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>

#include "collage/runtime/device.h"
#include "collage/support/file.h"
#include "collage/support/file_lock.h"
#include "collage/support/hash.h"

namespace collage::provider {
namespace {

namespace fs = std::filesystem;

// What collage.h says of a compile without a budget: CompileOptions::kUsualBudget, which a user of the C interface does not see.
constexpr double kDefaultBudget = 300;

Result<Program> Load(const fs::path& file, const ProviderOptions& options) {
  collage_program* program = nullptr;
  if (collage_error* error = collage_program_load(file.c_str(), options.load.c_str(), &program)) return Fail(ErrorOf(error));
  return Program(program, collage_program_free);
}

/// A file that is there while something reads it.
class ModelFile {
 public:
  static Result<ModelFile> Write(const fs::path& path, const std::string& bytes) {
    COLLAGE_TRY_STATUS(WriteFileAtomically(path, bytes));
    return ModelFile(path);
  }
  ModelFile(ModelFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ModelFile& operator=(ModelFile&&) = delete;
  ~ModelFile() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove(path_, ignored);
  }

 private:
  explicit ModelFile(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

Status Compile(const fs::path& file, const ProviderOptions& options, double budget, const std::string& model) {
  const fs::path model_path = fs::path(file).replace_extension(".onnx");
  const ModelFile model_file = COLLAGE_TRY(ModelFile::Write(model_path, model));
  nlohmann::json compile = nlohmann::json::parse(options.compile);
  compile["budget"] = budget;
  if (collage_error* error = collage_compile(model_path.c_str(), file.c_str(), compile.dump().c_str(), nullptr, nullptr))
    return Fail(ErrorOf(error));
  return {};
}

}  // namespace

Error ErrorOf(collage_error* error) {
  Error result{collage_error_message(error)};
  collage_error_free(error);
  return result;
}

fs::path ProgramFile(const ProviderOptions& options, const std::string& model_identity) {
  const uint64_t machine = HashBytes(options.identity, HashBytes(Fingerprint(Device{})));
  return options.programs / fmt::format("{}-{:016x}.collage", model_identity, machine);
}

Result<Program> FindOrCompile(const fs::path& file, const ProviderOptions& options, double budget_share,
                              const std::function<Result<std::string>()>& model, const std::function<void(const std::string&)>& tell) {
  if (fs::exists(file)) {
    Result<Program> found = Load(file, options);
    if (found) return found;
  }
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error) return Fail(file.parent_path().string() + ": cannot be made: " + error.message());
  const FileLock lock = COLLAGE_TRY(FileLock::Wait(fs::path(file).replace_extension(".lock")));
  if (fs::exists(file)) {  // by another process, while this one waited; or it cannot be loaded
    Result<Program> found = Load(file, options);
    if (found) return found;
    tell(found.error().message + "; it is compiled again");
  }
  const double budget = budget_share * options.budget.value_or(kDefaultBudget);
  tell(fmt::format("compiles for at most {:.0f} s; {} keeps the program", budget, file.string()));
  COLLAGE_TRY_STATUS(Compile(file, options, budget, COLLAGE_TRY(model())));
  return Load(file, options);
}

SessionPool::~SessionPool() {
  for (collage_session* session : idle_) collage_session_free(session);
}

Result<collage_session*> SessionPool::Take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      collage_session* session = idle_.back();
      idle_.pop_back();
      return session;
    }
  }
  collage_session* session = nullptr;
  if (collage_error* error = collage_session_create(program_, &session)) return Fail(ErrorOf(error));
  return session;
}

void SessionPool::GiveBack(collage_session* session) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(session);
}

}  // namespace collage::provider
