#include "collage/cache/sqlite_database.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "collage/cache/fact.h"
#include "collage/support/clock.h"

namespace collage {
namespace {

constexpr std::chrono::seconds kPatience{60};

// Until version 3 one table held kinds of facts told by names of backends. Its kernels are kept; everything else is measured again.
constexpr const char* kOldTable = "measurement";
constexpr const char* kOnlyKernels =
    " FROM measurement WHERE instr(device, '/in ') = 0 AND backend NOT IN ('race of plans', 'drift until the race', 'difference of plan',"
    " 'decision', 'transition', 'tuning', 'context pricing', 'noise floor')";

constexpr ColumnTypeNames kSqliteTypes{"INTEGER", "TEXT", "BLOB"};

class SqliteQuery final : public CacheQuery {
 public:
  SqliteQuery(const SqliteDatabase& database, sqlite3* handle, const std::string& text) : database_(database), handle_(handle) {
    sqlite3_prepare_v2(handle, text.c_str(), -1, &statement_, nullptr);
  }
  ~SqliteQuery() override { sqlite3_finalize(statement_); }

  void Bind(int parameter, const std::string& text) override {
    sqlite3_bind_text(statement_, IndexOf(parameter), text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
  }
  void Bind(int parameter, int64_t value) override { sqlite3_bind_int64(statement_, IndexOf(parameter), value); }
  void BindBytes(int parameter, std::string_view bytes) override {
    // Without an address it would be NULL.
    const char* start = bytes.empty() ? "" : bytes.data();
    sqlite3_bind_blob(statement_, IndexOf(parameter), start, static_cast<int>(bytes.size()), SQLITE_TRANSIENT);
  }

  Result<bool> Next() override {
    const int step = statement_ ? sqlite3_step(statement_) : SQLITE_ERROR;
    if (step != SQLITE_ROW && step != SQLITE_DONE) return database_.Failure();
    return step == SQLITE_ROW;
  }
  [[nodiscard]] size_t ChangedRows() const override { return static_cast<size_t>(sqlite3_changes(handle_)); }

  [[nodiscard]] std::optional<ColumnType> Type(int column) const override {
    switch (sqlite3_column_type(statement_, column)) {
      case SQLITE_INTEGER:
        return ColumnType::kInteger;
      case SQLITE_TEXT:
        return ColumnType::kText;
      case SQLITE_BLOB:
        return ColumnType::kBlob;
      default:
        return std::nullopt;
    }
  }
  [[nodiscard]] int64_t Integer(int column) const override { return sqlite3_column_int64(statement_, column); }
  [[nodiscard]] std::string_view Bytes(int column) const override {
    const bool is_blob = sqlite3_column_type(statement_, column) == SQLITE_BLOB;
    const void* start = is_blob ? sqlite3_column_blob(statement_, column) : sqlite3_column_text(statement_, column);
    const int count = sqlite3_column_bytes(statement_, column);
    return start ? std::string_view(static_cast<const char*>(start), static_cast<size_t>(count)) : std::string_view();
  }

 private:
  /// To SQLite $2 is a name, and numbers are those of the order in which names appear.
  [[nodiscard]] int IndexOf(int parameter) const {
    return sqlite3_bind_parameter_index(statement_, ("$" + std::to_string(parameter)).c_str());
  }

  const SqliteDatabase& database_;
  sqlite3* handle_;
  sqlite3_stmt* statement_ = nullptr;
};

/// When an entry of version 1 was stored is not known: zero, older than any other.
std::string MigrationFrom(int version) {
  return "INSERT OR IGNORE INTO " + std::string(TableOf(Fact::kKernel).name) + "(" + TableOf(Fact::kKernel).Columns() +
         ") SELECT function_hash, backend, backend_version, variant, device, threads, protocol, samples, invalid_reason, " +
         (version < 3 ? "x''" : "anchors") + ", verified, " + (version < 2 ? "0" : "stored_at") + kOnlyKernels;
}

}  // namespace

Result<std::unique_ptr<CacheDatabase>> SqliteDatabase::Open(const std::filesystem::path& path, bool create) {
  if (!create && !std::filesystem::is_regular_file(path)) return Fail("cache " + path.string() + ": is no file that can be read");
  if (path.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) return Fail("cache " + path.string() + ": its folder cannot be made: " + error.message());
  }
  // SQLite takes a file of less than its smallest page for an empty database, and would overwrite it.
  constexpr uintmax_t kSmallestPage = 512;
  std::error_code error;
  const uintmax_t bytes = std::filesystem::is_regular_file(path, error) ? std::filesystem::file_size(path, error) : 0;
  if (!error && bytes > 0 && bytes < kSmallestPage)
    return Fail("cache " + path.string() + ": file is not a database; remove the file or name another with --cache");
  sqlite3* handle = nullptr;
  const std::string name = path.empty() ? ":memory:" : path.string();
  const int opened = sqlite3_open_v2(name.c_str(), &handle, SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0), nullptr);
  std::unique_ptr<SqliteDatabase> database(new SqliteDatabase(handle, name));
  if (opened != SQLITE_OK) return database->Failure();
  sqlite3_busy_timeout(handle, static_cast<int>(std::chrono::milliseconds(kPatience).count()));
  COLLAGE_TRY_STATUS(database->Execute("PRAGMA synchronous=NORMAL"));
  return database;
}

// Two processes that change the journal of a new file at the same time would wait for each other for ever; SQLite then answers busy at
// once, without the time limit that it keeps otherwise.
Status SqliteDatabase::UseWriteAheadLog() {
  const auto give_up = Clock::now() + kPatience;
  while (true) {
    Status status = Execute("PRAGMA journal_mode=WAL");
    if (status || sqlite3_errcode(handle_) != SQLITE_BUSY || Clock::now() > give_up) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Error SqliteDatabase::ErrorAbout(const std::string& what) const {
  return Error{"cache " + name() + ": " + what + "; remove the file or name another with --cache"};
}

tl::unexpected<Error> SqliteDatabase::Failure() const { return Fail(ErrorAbout(sqlite3_errmsg(handle_))); }

Status SqliteDatabase::Execute(const std::string& text) {
  return sqlite3_exec(handle_, text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK ? Status{} : Failure();
}

std::unique_ptr<CacheQuery> SqliteDatabase::Prepare(const std::string& text) { return std::make_unique<SqliteQuery>(*this, handle_, text); }

Result<int> SqliteDatabase::SchemaVersion() { return static_cast<int>(COLLAGE_TRY(ReadInteger("PRAGMA user_version"))); }

Result<std::vector<std::string>> SqliteDatabase::Tables() {
  const auto query = Prepare("SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite_%' ORDER BY name");
  std::vector<std::string> names;
  while (COLLAGE_TRY(query->Next())) names.push_back(query->Text(0));
  return names;
}

Result<size_t> SqliteDatabase::ByteCount() {
  return static_cast<size_t>(COLLAGE_TRY(ReadInteger("PRAGMA page_count"))) *
         static_cast<size_t>(COLLAGE_TRY(ReadInteger("PRAGMA page_size")));
}

Status SqliteDatabase::Compact() {
  COLLAGE_TRY_STATUS(Execute("VACUUM"));
  return Execute("PRAGMA wal_checkpoint(TRUNCATE)");
}

std::vector<std::string> SqliteDatabase::StorageProblems() {
  std::vector<std::string> problems;
  const auto check = Prepare("PRAGMA integrity_check");
  Result<bool> row = check->Next();
  for (; row && *row; row = check->Next()) {
    if (check->Text(0) != "ok") problems.push_back(check->Text(0));
  }
  if (!row) problems.emplace_back(sqlite3_errmsg(handle_));
  return problems;
}

Result<int> SqliteDatabase::CheckIsCache() {
  const int version = COLLAGE_TRY(SchemaVersion());
  const std::vector<std::string> tables = COLLAGE_TRY(Tables());
  const bool is_ours =
      std::all_of(tables.begin(), tables.end(), [](const std::string& name) { return name == kOldTable || FindFactTable(name); });
  if (!is_ours || (version != 0 && tables.empty())) return Fail(ErrorAbout("is a database of another program"));
  if (version < 0 || version > kCacheSchemaVersion) {
    return Fail(ErrorAbout("has schema version " + std::to_string(version) + ", expected " + std::to_string(kCacheSchemaVersion) +
                           " or an older one"));
  }
  return version;
}

Status SqliteDatabase::PrepareSchema() {
  // A file that is not ours is told before anything is written to it.
  const int version = COLLAGE_TRY(CheckIsCache());
  {
    const auto check = Prepare("PRAGMA quick_check(1)");
    if (!COLLAGE_TRY(check->Next())) return Failure();
    if (const std::string verdict = check->Text(0); verdict != "ok") return Fail(ErrorAbout("is damaged (" + verdict + ")"));
  }
  COLLAGE_TRY_STATUS(UseWriteAheadLog());
  return version == kCacheSchemaVersion ? Status{} : CreateOrMigrate();
}

Status SqliteDatabase::CreateOrMigrate() {
  CacheTransaction transaction = COLLAGE_TRY(CacheTransaction::Begin(*this));
  // Another process may have done it while this one waited for the lock.
  const int version = COLLAGE_TRY(CheckIsCache());
  if (version == kCacheSchemaVersion) return {};
  const std::vector<std::string> tables = COLLAGE_TRY(Tables());
  for (const FactTable& table : FactTables()) COLLAGE_TRY_STATUS(Execute(table.Creation(kSqliteTypes) + " WITHOUT ROWID"));
  if (std::find(tables.begin(), tables.end(), kOldTable) != tables.end()) {
    // A file that was killed between its table and its version number has a table of version 1.
    COLLAGE_TRY_STATUS(Execute(MigrationFrom(version)));
    COLLAGE_TRY_STATUS(Execute("DROP TABLE " + std::string(kOldTable)));
  }
  COLLAGE_TRY_STATUS(Execute("PRAGMA user_version=" + std::to_string(kCacheSchemaVersion)));
  return transaction.Commit();
}

}  // namespace collage
