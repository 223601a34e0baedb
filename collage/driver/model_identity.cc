#include "collage/driver/model_identity.h"

#include <spdlog/fmt/fmt.h>

#include "collage/support/hash.h"
#include "collage/support/mapped_file.h"

namespace collage {

Result<std::string> ModelIdentity(const std::filesystem::path& path) {
  const MappedFile file = COLLAGE_TRY(MappedFile::Open(path));
  return fmt::format("{:016x}", HashBytes(file.content()));
}

}  // namespace collage
