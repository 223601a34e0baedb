#pragma once

#include <string>
#include <vector>

#include "collage/c/collage.h"

namespace collage::c_abi {

/// Runs collage_compiler with these arguments (tools/compiler) until it ends, tells `progress` of it and does what that wishes. `saved`, if
/// not null, gets the file that was written. The caller's error, or null.
collage_error* RunCompiler(const std::vector<std::string>& job, collage_progress progress, void* user, std::string* saved = nullptr);

}  // namespace collage::c_abi
