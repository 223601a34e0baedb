#pragma once

// The database behind MeasurementCache and its maintenance (cache_maintenance.h): a file of SQLite, or a PostgreSQL server. Statements are
// those that both understand: parameters are $1, $2, ..., and rows are replaced or kept by ON CONFLICT. Where they differ, a function here
// says what it does. A library that speaks to many databases (ODBC, say) was considered: it would not spare one of these functions.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collage/cache/fact.h"
#include "collage/support/result.h"

namespace collage {

/// Bumped whenever a table changes. Version 1 had no stored_at, version 2 no anchors, those before 5 not all tables; they are
/// migrated. A newer version is refused.
inline constexpr int kCacheSchemaVersion = 5;

/// A statement and the rows that it gives. One that could not be prepared fails at its first Next. Parameters count from 1, columns from 0.
class CacheQuery {
 public:
  CacheQuery() = default;
  CacheQuery(const CacheQuery&) = delete;
  CacheQuery& operator=(const CacheQuery&) = delete;
  virtual ~CacheQuery() = default;

  virtual void Bind(int parameter, const std::string& text) = 0;
  virtual void Bind(int parameter, int64_t value) = 0;
  virtual void BindBytes(int parameter, std::string_view bytes) = 0;
  void Bind(int parameter, const std::vector<double>& values);

  /// Goes to the next row, the first time to the first one; false: there is none.
  virtual Result<bool> Next() = 0;
  /// Next, for a statement that gives no rows.
  Status Run();
  /// Rows that it has inserted, changed or removed, once it has run.
  [[nodiscard]] virtual size_t ChangedRows() const = 0;

  /// What the row has there, whatever the table says; nothing for any other type.
  [[nodiscard]] virtual std::optional<ColumnType> Type(int column) const = 0;
  [[nodiscard]] virtual int64_t Integer(int column) const = 0;
  /// Text or a blob; valid until the next row.
  [[nodiscard]] virtual std::string_view Bytes(int column) const = 0;
  [[nodiscard]] std::string Text(int column) const { return std::string(Bytes(column)); }
  /// Whole doubles of the blob; what is left over at its end is dropped.
  [[nodiscard]] std::vector<double> Doubles(int column) const;
};

/// An open database. Errors name it.
class CacheDatabase {
 public:
  CacheDatabase(const CacheDatabase&) = delete;
  CacheDatabase& operator=(const CacheDatabase&) = delete;
  virtual ~CacheDatabase() = default;

  /// Checks what can be checked quickly; then creates the tables or migrates older ones, in one transaction.
  virtual Status PrepareSchema() = 0;
  /// The schema version, if that is one of a cache which this program can read; zero where there is none yet. Errors when it is not.
  [[nodiscard]] virtual Result<int> CheckIsCache() = 0;
  /// Zero where nothing is there yet.
  [[nodiscard]] virtual Result<int> SchemaVersion() = 0;
  /// Tables of facts that there are, by name.
  [[nodiscard]] virtual Result<std::vector<std::string>> Tables() = 0;
  /// Statements without parameters, of which the rows are of no interest.
  virtual Status Execute(const std::string& text) = 0;
  virtual std::unique_ptr<CacheQuery> Prepare(const std::string& text) = 0;
  /// Begins a transaction in which nobody else writes, so that what is read in it stays true.
  virtual Status BeginWriting() = 0;
  /// What it takes on its disk.
  [[nodiscard]] virtual Result<size_t> ByteCount() = 0;
  /// Gives back the space of rows that are gone.
  virtual Status Compact() = 0;
  /// What is wrong with pages and indices, as far as that can be asked; a line each.
  virtual std::vector<std::string> StorageProblems() = 0;

  /// The only row's only number of a statement.
  [[nodiscard]] Result<int64_t> ReadInteger(const std::string& text);
  /// As errors name it: the path of a file, or the URL without its password.
  [[nodiscard]] const std::string& name() const { return name_; }

 protected:
  explicit CacheDatabase(std::string name) : name_(std::move(name)) {}

 private:
  std::string name_;
};

/// Whether a name of a cache is that of a PostgreSQL database: "postgresql://..." or "postgres://...".
[[nodiscard]] bool IsCacheUrl(const std::string& name);
/// A URL without its password; any other name as it is.
[[nodiscard]] std::string WithoutPassword(const std::string& name);

/// Opens a file, a database of a server (IsCacheUrl), or one in memory where the name is empty. What is missing is created only when
/// `create` says so. The schema is not looked at.
Result<std::unique_ptr<CacheDatabase>> OpenCacheDatabase(const std::string& name, bool create);

/// Rolls back at the end of its scope unless committed.
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

}  // namespace collage
