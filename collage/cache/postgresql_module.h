#pragma once

#include <memory>
#include <string>

#include "collage/cache/cache_database.h"

namespace collage {

/// The one function of lib/collage/libcollage_postgresql.so, a module of its own so that libpq and all that it needs are loaded only by who
/// names a server.
using OpenPostgresqlFunction = Result<std::unique_ptr<CacheDatabase>>(const std::string& url, bool create);
inline constexpr const char* kOpenPostgresqlSymbol = "collage_open_postgresql";

/// Loads the module and opens the database of the URL. Errors where the module or libpq is missing, or no server answers.
Result<std::unique_ptr<CacheDatabase>> OpenPostgresql(const std::string& url, bool create);

}  // namespace collage
