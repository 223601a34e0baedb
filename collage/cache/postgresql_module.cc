#include "collage/cache/postgresql_module.h"

#include <dlfcn.h>

#include <filesystem>

#include "collage/support/check.h"

namespace collage {

Result<std::unique_ptr<CacheDatabase>> OpenPostgresql(const std::string& url, bool create) {
  Dl_info self{};
  COLLAGE_CHECK(::dladdr(reinterpret_cast<const void*>(&OpenPostgresql), &self) != 0);
  const std::filesystem::path file = std::filesystem::path(self.dli_fname).parent_path() / "collage" / "libcollage_postgresql.so";
  // For ever: it would be loaded again by the next cache.
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return Fail("cache " + WithoutPassword(url) + ": PostgreSQL cannot be spoken to: " + ::dlerror());
  auto* open = reinterpret_cast<OpenPostgresqlFunction*>(::dlsym(library, kOpenPostgresqlSymbol));
  if (!open) return Fail(file.string() + ": is of another version of Collage");
  return open(url, create);
}

}  // namespace collage
