#pragma once

#include <optional>
#include <string>

#include "collage/support/supervisor.h"

namespace collage::tools {

/// Where this process says what it does, if it is supervised; else null.
Activity* SupervisedActivity();

/// Runs this very command in a process of its own, again whenever a kernel crashed or hung inside a whole plan: that kernel is then Invalid
/// in the cache, and the next process goes on from what the cache holds. Gives the exit code of the last one; nothing in the supervised
/// process, which is to do the work.
std::optional<int> RunSupervised(const std::string& cache);

}  // namespace collage::tools
