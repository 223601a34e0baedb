#pragma once

#include <string>

#include "collage/driver/compile.h"
#include "collage/support/result.h"

namespace collage::tools {

/// The options of collage_compile (collage/c/collage.h). Errors name the option, what was found and what would be right.
Result<CompileOptions> ReadJobOptions(const std::string& text);

}  // namespace collage::tools
