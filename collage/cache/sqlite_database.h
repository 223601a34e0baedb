#pragma once

#include <sqlite3.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "collage/cache/cache_database.h"

namespace collage {

/// A file of SQLite. A file that is not ours is told before anything is written to it.
class SqliteDatabase final : public CacheDatabase {
 public:
  static Result<std::unique_ptr<CacheDatabase>> Open(const std::filesystem::path& path, bool create);
  ~SqliteDatabase() override { sqlite3_close(handle_); }

  Status PrepareSchema() override;
  [[nodiscard]] Result<int> CheckIsCache() override;
  /// user_version.
  [[nodiscard]] Result<int> SchemaVersion() override;
  [[nodiscard]] Result<std::vector<std::string>> Tables() override;
  Status Execute(const std::string& text) override;
  std::unique_ptr<CacheQuery> Prepare(const std::string& text) override;
  Status BeginWriting() override { return Execute("BEGIN IMMEDIATE"); }
  /// Pages of the file, those of the journal that are not in it yet included.
  [[nodiscard]] Result<size_t> ByteCount() override;
  Status Compact() override;
  std::vector<std::string> StorageProblems() override;

  /// The last error of SQLite.
  [[nodiscard]] tl::unexpected<Error> Failure() const;

 private:
  SqliteDatabase(sqlite3* handle, std::string name) : CacheDatabase(std::move(name)), handle_(handle) {}
  [[nodiscard]] Error ErrorAbout(const std::string& what) const;
  Status UseWriteAheadLog();
  Status CreateOrMigrate();

  sqlite3* handle_;
};

}  // namespace collage
