#include "collage/cache/postgresql_module.h"

#include <filesystem>

#include "collage/support/shared_object.h"

namespace collage {

Result<std::unique_ptr<CacheDatabase>> OpenPostgresql(const std::string& url, bool create) {
  const std::filesystem::path file = SharedObjectOf(&OpenPostgresql).parent_path() / "collage" / "libcollage_postgresql.so";
  const Result<OpenPostgresqlFunction*> open = OpenFunction<OpenPostgresqlFunction>(file, kOpenPostgresqlSymbol);
  if (!open) return Fail("cache " + WithoutPassword(url) + ": PostgreSQL cannot be spoken to: " + open.error().message);
  return (*open)(url, create);
}

}  // namespace collage
