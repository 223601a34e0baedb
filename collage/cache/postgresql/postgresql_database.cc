// A cache in a database of PostgreSQL, in its schema `collage`. Parameters and results travel in binary form: eight bytes for an integer,
// the bytes themselves for text and blobs (https://www.postgresql.org/docs/15/libpq-exec.html).

#include <endian.h>
#include <libpq-fe.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "collage/cache/postgresql_module.h"

namespace collage {
namespace {

// "C": keys compare and sort as their bytes, as they do in SQLite, whatever language the server speaks.
constexpr ColumnTypeNames kTypes{"BIGINT", "TEXT COLLATE \"C\"", "BYTEA"};

// Numbers of types in the catalogue of every server (pg_type.dat).
constexpr Oid kBytea = 17;
constexpr Oid kInt8 = 20;
constexpr Oid kInt4 = 23;
constexpr Oid kText = 25;
constexpr int kBinary = 1;  // the format of a parameter: 0 is text

/// Of the lock that is held while tables are created, and by whoever wants to be the only writer; the letters of "collage" as a number.
constexpr const char* kLock = "SELECT pg_advisory_xact_lock(x'636f6c6c616765'::bigint)";

struct ClearResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using ResultPointer = std::unique_ptr<PGresult, ClearResult>;

/// One line of what may be several.
std::string OneLine(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  while (!message.empty() && message.back() == ' ') message.pop_back();
  return message;
}

/// Text of PostgreSQL is UTF-8 without zeros; of a library's message other bytes are replaced.
std::string AsText(const std::string& text) {
  using Json = nlohmann::json;
  std::string valid = Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
  std::replace(valid.begin(), valid.end(), '\0', ' ');
  return valid;
}

class PostgresqlDatabase final : public CacheDatabase {
 public:
  PostgresqlDatabase(PGconn* connection, std::string name) : CacheDatabase(std::move(name)), connection_(connection) {}
  ~PostgresqlDatabase() override { PQfinish(connection_); }

  Status Connect(bool create) {
    if (PQstatus(connection_) != CONNECTION_OK) return Failure();
    PQsetNoticeProcessor(
        connection_, [](void*, const char*) {}, nullptr);
    COLLAGE_TRY_STATUS(Execute("SET search_path TO collage"));
    if (!create && COLLAGE_TRY(SchemaVersion()) == 0) return Fail(ErrorAbout("holds no cache"));
    return {};
  }

  Status PrepareSchema() override {
    if (COLLAGE_TRY(CheckIsCache()) == kCacheSchemaVersion) return {};
    COLLAGE_TRY_STATUS(Execute("BEGIN"));
    const Status created = Create();
    COLLAGE_TRY_STATUS(Execute(created ? "COMMIT" : "ROLLBACK"));
    return created;
  }

  Result<int> CheckIsCache() override {
    const int version = COLLAGE_TRY(SchemaVersion());
    if (version >= 0 && version <= kCacheSchemaVersion) return version;
    return Fail(ErrorAbout("has schema version " + std::to_string(version) + ", expected " + std::to_string(kCacheSchemaVersion) +
                           " or an older one"));
  }

  Result<int> SchemaVersion() override {
    if (COLLAGE_TRY(ReadInteger("SELECT count(*) FROM pg_tables WHERE schemaname='collage' AND tablename='schema_version'")) == 0) return 0;
    return static_cast<int>(COLLAGE_TRY(ReadInteger("SELECT version FROM schema_version")));
  }

  Result<std::vector<std::string>> Tables() override {
    const auto query = Prepare("SELECT tablename::text FROM pg_tables WHERE schemaname='collage' ORDER BY tablename");
    std::vector<std::string> names;
    while (COLLAGE_TRY(query->Next())) {
      if (FindFactTable(query->Text(0))) names.push_back(query->Text(0));
    }
    return names;
  }

  Status Execute(const std::string& text) override {
    const ResultPointer result(PQexec(connection_, text.c_str()));
    const ExecStatusType status = PQresultStatus(result.get());
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ? Status{} : Failure();
  }

  std::unique_ptr<CacheQuery> Prepare(const std::string& text) override;

  Status BeginWriting() override {
    std::string text = std::string("BEGIN; ") + kLock;
    for (const std::string& table : COLLAGE_TRY(Tables())) text += "; LOCK TABLE " + table + " IN SHARE ROW EXCLUSIVE MODE";
    const Status begun = Execute(text);
    if (!begun) (void)Execute("ROLLBACK");
    return begun;
  }

  Result<size_t> ByteCount() override {
    return static_cast<size_t>(
        COLLAGE_TRY(ReadInteger("SELECT coalesce(sum(pg_total_relation_size('collage.' || tablename)), 0)::bigint FROM pg_tables WHERE "
                                "schemaname='collage'")));
  }

  Status Compact() override {
    // One after another: VACUUM is no part of a transaction, which several statements in one call are.
    for (const std::string& table : COLLAGE_TRY(Tables())) COLLAGE_TRY_STATUS(Execute("VACUUM " + table));
    return {};
  }

  /// Pages are the server's business.
  std::vector<std::string> StorageProblems() override { return {}; }

  /// The last error of the connection.
  [[nodiscard]] tl::unexpected<Error> Failure() const { return Fail(ErrorAbout(OneLine(PQerrorMessage(connection_)))); }

 private:
  [[nodiscard]] Error ErrorAbout(const std::string& what) const { return Error{"cache " + name() + ": " + what}; }

  Status Create() {
    COLLAGE_TRY_STATUS(Execute(kLock));
    // Another process may have done it while this one waited for the lock.
    if (COLLAGE_TRY(CheckIsCache()) == kCacheSchemaVersion) return {};
    COLLAGE_TRY_STATUS(Execute("CREATE SCHEMA IF NOT EXISTS collage"));
    for (const FactTable& table : FactTables()) COLLAGE_TRY_STATUS(Execute(table.Creation(kTypes)));
    // An older one lacks tables only.
    COLLAGE_TRY_STATUS(Execute("CREATE TABLE IF NOT EXISTS schema_version(version BIGINT NOT NULL)"));
    COLLAGE_TRY_STATUS(Execute("DELETE FROM schema_version"));
    return Execute("INSERT INTO schema_version VALUES(" + std::to_string(kCacheSchemaVersion) + ")");
  }

  PGconn* connection_;
};

class PostgresqlQuery final : public CacheQuery {
 public:
  PostgresqlQuery(const PostgresqlDatabase& database, PGconn* connection, std::string text)
      : database_(database), connection_(connection), text_(std::move(text)) {}

  using CacheQuery::Bind;
  void Bind(int parameter, const std::string& text) override { Set(parameter, kText, AsText(text)); }
  void Bind(int parameter, int64_t value) override {
    const uint64_t big_endian = htobe64(static_cast<uint64_t>(value));
    Set(parameter, kInt8, std::string(reinterpret_cast<const char*>(&big_endian), sizeof big_endian));
  }
  void BindBytes(int parameter, std::string_view bytes) override { Set(parameter, kBytea, std::string(bytes)); }

  Result<bool> Next() override {
    if (result_) return ++row_ < PQntuples(result_.get());
    std::vector<const char*> values;
    std::vector<int> lengths;
    for (const std::string& value : values_) {
      values.push_back(value.data());
      lengths.push_back(static_cast<int>(value.size()));
    }
    const std::vector<int> formats(values.size(), kBinary);
    result_.reset(PQexecParams(connection_, text_.c_str(), static_cast<int>(values.size()), types_.data(), values.data(), lengths.data(),
                               formats.data(), kBinary));
    const ExecStatusType status = PQresultStatus(result_.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) return database_.Failure();
    return PQntuples(result_.get()) > 0;
  }
  [[nodiscard]] size_t ChangedRows() const override { return static_cast<size_t>(std::atoll(PQcmdTuples(result_.get()))); }

  [[nodiscard]] std::optional<ColumnType> Type(int column) const override {
    if (PQgetisnull(result_.get(), row_, column)) return std::nullopt;
    switch (PQftype(result_.get(), column)) {
      case kInt4:
      case kInt8:
        return ColumnType::kInteger;
      case kText:
        return ColumnType::kText;
      case kBytea:
        return ColumnType::kBlob;
      default:
        return std::nullopt;
    }
  }
  [[nodiscard]] int64_t Integer(int column) const override {
    const std::string_view bytes = Bytes(column);
    if (bytes.empty()) return 0;
    // Sign and then the bytes, the highest first, of a number of any length.
    uint64_t value = static_cast<int8_t>(bytes.front()) < 0 ? ~uint64_t{0} : 0;
    for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
    return static_cast<int64_t>(value);
  }
  [[nodiscard]] std::string_view Bytes(int column) const override {
    return {PQgetvalue(result_.get(), row_, column), static_cast<size_t>(PQgetlength(result_.get(), row_, column))};
  }

 private:
  void Set(int parameter, Oid type, std::string value) {
    const auto index = static_cast<size_t>(parameter - 1);
    values_.resize(std::max(values_.size(), index + 1));
    types_.resize(values_.size(), kText);
    values_[index] = std::move(value);
    types_[index] = type;
  }

  const PostgresqlDatabase& database_;
  PGconn* connection_;
  std::string text_;
  std::vector<std::string> values_;
  std::vector<Oid> types_;
  ResultPointer result_;
  int row_ = 0;
};

std::unique_ptr<CacheQuery> PostgresqlDatabase::Prepare(const std::string& text) {
  return std::make_unique<PostgresqlQuery>(*this, connection_, text);
}

}  // namespace
}  // namespace collage

extern "C" __attribute__((visibility("default"))) collage::Result<std::unique_ptr<collage::CacheDatabase>> collage_open_postgresql(
    const std::string& url, bool create) {
  // What the URL says goes before what stands above it. Ten seconds: a server that takes longer is not there; and a peer that is gone is
  // noticed within a minute.
  const char* const keys[] = {
      "connect_timeout", "keepalives_idle", "keepalives_interval", "fallback_application_name", "dbname", "client_encoding", nullptr};
  const char* const values[] = {"10", "30", "10", "collage", url.c_str(), "UTF8", nullptr};
  PGconn* connection = PQconnectdbParams(keys, values, /*expand_dbname=*/1);
  auto database = std::make_unique<collage::PostgresqlDatabase>(connection, collage::WithoutPassword(url));
  COLLAGE_TRY_STATUS(database->Connect(create));
  return database;
}
