#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collage/c/collage.h"
#include "collage/provider/options.h"
#include "collage/support/result.h"

namespace collage::provider {

using Program = std::unique_ptr<collage_program, void (*)(collage_program*)>;

/// The error of a call of collage.h; takes it over.
Error ErrorOf(collage_error* error);

/// Where the program of a model is kept. The same for the same model, machine and options, whoever asks.
std::filesystem::path ProgramFile(const ProviderOptions& options, const std::string& model_identity);

/// The program in that file; it is compiled first where there is none, or one that cannot be loaded here any more. Processes that want the
/// same one meanwhile wait for the first. `model` gives the bytes of an ONNX model, `tell` is told what takes long. Errors name the file.
Result<Program> FindOrCompile(const std::filesystem::path& file, const ProviderOptions& options, double budget_share,
                              const std::function<Result<std::string>()>& model, const std::function<void(const std::string&)>& tell);

/// Sessions of a program for threads that run it now.
class SessionPool {
 public:
  explicit SessionPool(collage_program* program) : program_(program) {}
  SessionPool(const SessionPool&) = delete;
  ~SessionPool();

  /// One that nobody else has until it is given back. Errors when it cannot be made.
  Result<collage_session*> Take();
  void GiveBack(collage_session* session);

 private:
  collage_program* program_;
  std::mutex mutex_;
  std::vector<collage_session*> idle_;
};

}  // namespace collage::provider
