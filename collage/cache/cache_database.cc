#include "collage/cache/cache_database.h"

#include <cstring>

#include "collage/cache/postgresql_module.h"
#include "collage/cache/sqlite_database.h"

namespace collage {

void CacheQuery::Bind(int parameter, const std::vector<double>& values) {
  BindBytes(parameter, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)});
}

Status CacheQuery::Run() {
  COLLAGE_TRY(Next());
  return {};
}

std::vector<double> CacheQuery::Doubles(int column) const {
  const std::string_view bytes = Bytes(column);
  std::vector<double> values(bytes.size() / sizeof(double));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(double));
  return values;
}

Result<int64_t> CacheDatabase::ReadInteger(const std::string& text) {
  const std::unique_ptr<CacheQuery> query = Prepare(text);
  const bool has_row = COLLAGE_TRY(query->Next());
  return has_row ? query->Integer(0) : 0;
}

bool IsCacheUrl(const std::string& name) { return name.starts_with("postgresql://") || name.starts_with("postgres://"); }

std::string WithoutPassword(const std::string& name) {
  if (!IsCacheUrl(name)) return name;
  std::string shown = name;
  const size_t start = shown.find("://") + 3;
  const size_t end = shown.find('@', start);
  const size_t colon = shown.find(':', start);
  if (end < shown.find('/', start) && colon < end) shown.erase(colon, end - colon);
  constexpr std::string_view kParameter = "password=";
  for (size_t at = shown.find(kParameter); at != std::string::npos; at = shown.find(kParameter, at + kParameter.size())) {
    const size_t value = at + kParameter.size();
    shown.erase(value, std::min(shown.find('&', value), shown.size()) - value);
  }
  return shown;
}

Result<std::unique_ptr<CacheDatabase>> OpenCacheDatabase(const std::string& name, bool create) {
  if (IsCacheUrl(name)) return OpenPostgresql(name, create);
  return SqliteDatabase::Open(name, create);
}

Result<CacheTransaction> CacheTransaction::Begin(CacheDatabase& database) {
  COLLAGE_TRY_STATUS(database.BeginWriting());
  return CacheTransaction(database);
}

CacheTransaction::~CacheTransaction() {
  if (database_) (void)database_->Execute("ROLLBACK");
}

Status CacheTransaction::Commit() {
  COLLAGE_TRY_STATUS(database_->Execute("COMMIT"));
  database_ = nullptr;
  return {};
}

}  // namespace collage
