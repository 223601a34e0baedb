#pragma once

#include <string>

namespace collage {

/// How a process ended, of which waitpid gave this status: "signal 11, Segmentation fault", "exit code 3".
std::string WaitStatusToString(int status);

}  // namespace collage
