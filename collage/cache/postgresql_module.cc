#include "collage/cache/postgresql_module.h"

#include <filesystem>
#include <string>

#include "collage/support/shared_object.h"

namespace collage {

Result<std::unique_ptr<CacheDatabase>> OpenPostgresql(const std::string& url, bool create) {
  const std::filesystem::path file = SharedObjectOf(&OpenPostgresql).parent_path() / "collage" / "libcollage_postgresql.so";
  const Result<OpenPostgresqlFunction*> open = OpenFunction<OpenPostgresqlFunction>(file, kOpenPostgresqlSymbol);
  if (open) return (*open)(url, create);
  const std::string& why = open.error().message;
  // The system's, in a wheel as well: it is updated where a hole in it is mended.
  const std::string cure = why.find("libpq.so") == std::string::npos ? "" : "; install libpq (Debian: libpq5)";
  return Fail("cache " + WithoutPassword(url) + ": PostgreSQL cannot be spoken to: " + why + cure);
}

}  // namespace collage
