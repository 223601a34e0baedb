#include "collage/support/process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace collage {

std::string WaitStatusToString(int status) {
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status)) + ", " + ::strsignal(WTERMSIG(status));
  return "exit code " + std::to_string(WEXITSTATUS(status));
}

Result<pid_t> Spawn(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                    const posix_spawn_file_actions_t& actions, const posix_spawnattr_t* attributes) {
  std::vector<char*> words = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  pid_t process = 0;
  const int error = ::posix_spawn(&process, program.c_str(), &actions, attributes, words.data(), environ);
  if (error != 0) return Fail(program.string() + ": cannot be started: " + std::strerror(error));
  return process;
}

}  // namespace collage
