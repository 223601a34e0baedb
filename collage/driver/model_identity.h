#pragma once

#include <filesystem>
#include <string>

#include "collage/support/result.h"

namespace collage {

/// Which model a file holds, as a hash of its bytes; of files beside it, which hold weights, nothing is read. Errors name the file.
Result<std::string> ModelIdentity(const std::filesystem::path& path);

}  // namespace collage
