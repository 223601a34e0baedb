#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "collage/support/result.h"

namespace collage {

/// The program that compiles (tools/compiler), running. It writes a line of JSON for each thing that it has to say, and is killed when the
/// thread that started it ends.
class CompilerProcess {
 public:
  /// Beside the libraries, in a build as after an installation.
  static std::filesystem::path Program();
  /// Its process group is its own: Ctrl-C in a terminal is for the caller, who decides.
  static Result<CompilerProcess> Start(const std::filesystem::path& program, const std::vector<std::string>& arguments);
  CompilerProcess(CompilerProcess&& other) noexcept;
  CompilerProcess& operator=(CompilerProcess&&) = delete;
  /// Kills it where it runs.
  ~CompilerProcess();

  /// The lines that it has written since, waiting for the first one up to `milliseconds`; nothing after its last.
  std::optional<std::vector<std::string>> ReadLines(int milliseconds);
  /// It is to end with the best plan of what was measured so far. To be asked once: a second time ends it at once.
  void Stop() const;
  /// How it ended, in words. Waits for that.
  std::string Await();

 private:
  CompilerProcess(pid_t process, int pipe) : process_(process), pipe_(pipe) {}

  pid_t process_;  // 0: has been awaited
  int pipe_;
  std::string rest_;  // of a line that is not whole yet
};

}  // namespace collage
