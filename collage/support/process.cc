#include "collage/support/process.h"

#include <sys/wait.h>

#include <cstring>

namespace collage {

std::string WaitStatusToString(int status) {
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status)) + ", " + ::strsignal(WTERMSIG(status));
  return "exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace collage
