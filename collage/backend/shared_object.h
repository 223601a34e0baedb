#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "collage/backend/backend.h"

namespace collage {

/// Opens the backend in a shared object, privately (RTLD_LOCAL: two LLVMs or two OpenMPs must not see each other), and for ever. Errors
/// name the file: it is no shared object, no backend, or one that was built for another contract or with other headers.
Result<std::unique_ptr<const Backend>> OpenBackend(const std::filesystem::path& file);

}  // namespace collage
