#include "collage/driver/model_identity.h"

#include <spdlog/fmt/fmt.h>

#include "collage/support/hash.h"
#include "collage/support/mapped_file.h"
#include "collage/support/mappings.h"

namespace collage {

Result<std::string> ModelIdentity(const std::filesystem::path& path) {
  const MappedFile file = COLLAGE_TRY(MappedFile::Open(path));
  uint64_t hash = HashBytes({});
  ReadOnce(file.content(), [&](std::string_view piece) { hash = HashBytes(piece, hash); });
  return fmt::format("{:016x}", hash);
}

}  // namespace collage
