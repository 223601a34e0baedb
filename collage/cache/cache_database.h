#pragma once

// The SQLite handle behind MeasurementCache and the maintenance of its file (cache_maintenance.h).

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collage/support/result.h"

namespace collage {

/// Bumped whenever the table changes. Version 1 had no stored_at, version 2 no anchors; both are migrated. Any other version is refused.
inline constexpr int kCacheSchemaVersion = 4;

/// An open file. Errors name it.
class CacheDatabase {
 public:
  /// Opens the file; what is missing is created only when `create` says so. The schema is not looked at.
  static Result<std::unique_ptr<CacheDatabase>> Open(const std::filesystem::path& path, bool create);
  CacheDatabase(const CacheDatabase&) = delete;
  CacheDatabase& operator=(const CacheDatabase&) = delete;
  ~CacheDatabase() { sqlite3_close(handle_); }

  /// Checks the pages and turns the write-ahead log on; then creates the table or migrates an older one, in one transaction.
  Status PrepareSchema();
  /// The schema version, if that is one of a cache which this program can read; zero for an empty file. Errors when it is not.
  [[nodiscard]] Result<int> CheckIsCache() const;
  /// user_version; zero for a new file.
  [[nodiscard]] Result<int> SchemaVersion() const;
  /// Tables of the file, by name.
  [[nodiscard]] Result<std::vector<std::string>> Tables() const;
  Status Execute(const std::string& text);
  /// The last error of SQLite.
  [[nodiscard]] tl::unexpected<Error> Failure() const;
  [[nodiscard]] Error ErrorAbout(const std::string& what) const;

  [[nodiscard]] sqlite3* get() const { return handle_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  CacheDatabase(sqlite3* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  Status UseWriteAheadLog();
  Status CreateOrMigrate();

  sqlite3* handle_;
  std::string path_;
};

/// Rolls back at the end of its scope unless committed. It takes the write lock at once, so that what is read in it stays true.
class CacheTransaction {
 public:
  static Result<CacheTransaction> Begin(CacheDatabase& database);
  CacheTransaction(CacheTransaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  CacheTransaction& operator=(CacheTransaction&&) = delete;
  ~CacheTransaction();
  Status Commit();

 private:
  explicit CacheTransaction(CacheDatabase& database) : database_(&database) {}
  CacheDatabase* database_;
};

/// A prepared statement; one that could not be prepared fails at its first Step. Parameters count from 1, columns from 0.
class CacheQuery {
 public:
  CacheQuery(sqlite3* database, const std::string& text);
  CacheQuery(const CacheQuery&) = delete;
  CacheQuery& operator=(const CacheQuery&) = delete;
  ~CacheQuery() { sqlite3_finalize(statement_); }

  void Bind(int index, const std::string& text);
  void Bind(int index, int64_t value) { sqlite3_bind_int64(statement_, index, value); }
  void Bind(int index, const std::vector<double>& values);
  int Step() { return statement_ ? sqlite3_step(statement_) : SQLITE_ERROR; }

  [[nodiscard]] int Type(int column) const { return sqlite3_column_type(statement_, column); }
  [[nodiscard]] int64_t Integer(int column) const { return sqlite3_column_int64(statement_, column); }
  [[nodiscard]] std::string Text(int column) const;
  /// Whole doubles of the blob; what is left over at its end is dropped.
  [[nodiscard]] std::vector<double> Doubles(int column) const;
  [[nodiscard]] size_t ByteCount(int column) const { return static_cast<size_t>(sqlite3_column_bytes(statement_, column)); }

 private:
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace collage
