#include "collage/cache/cache_maintenance.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>

#include "collage/cache/cache_database.h"
#include "collage/support/file.h"

namespace collage {
namespace {

class CacheMaintenanceTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("cache_maintenance_test_" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::filesystem::path File() const { return folder_ / "cache.sqlite"; }
  /// Past MeasurementCache, which would not write what is wrong.
  void Execute(const std::string& text) const {
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(File().c_str(), &handle), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(handle, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(handle);
    sqlite3_close(handle);
  }
  std::filesystem::path folder_;
};

MeasurementKey Key(uint64_t hash, const std::string& backend = "dnnl", const std::string& device = "cpu-1/evicting 4 MiB") {
  return {hash, backend, "2.6.3", "winograd", device, 2};
}

MeasurementKey FactKey(Fact fact, uint64_t hash) {
  MeasurementKey key = Key(hash);
  key.context = ~hash;
  key.fact = fact;
  return key;
}

std::string Export(const MeasurementCache& cache) {
  std::string lines;
  EXPECT_TRUE(ForEachEntry(cache, [&](const CacheEntry& entry) {
    lines += ToJsonLine(entry) + "\n";
    return Status{};
  }));
  return lines;
}

void Fill(MeasurementCache& cache) {
  ASSERT_TRUE(cache.Store(Key(1), {{1e-3, 1.0 / 3, 5e-324}, ""}));
  ASSERT_TRUE(cache.StoreVerified(Key(1)));
  ASSERT_TRUE(cache.Store(Key(0xfedcba9876543210), {{}, "refused: \"tile\"\n\xc3\xa9"}));
  ASSERT_TRUE(cache.Store(Key(3, "native", "cpu-10"), {{2e-6}, ""}));
  ASSERT_TRUE(cache.Store(FactKey(Fact::kDecision, 4), {{0.0}, ""}));
  ASSERT_TRUE(cache.Store(FactKey(Fact::kVerdict, 5), {{0.0}, ""}));
}

TEST_F(CacheMaintenanceTest, AnExportImportedIsTheSameExport) {
  MeasurementCache cache = MeasurementCache::Open(File()).value();
  Fill(cache);
  const std::string lines = Export(cache);
  MeasurementCache other = MeasurementCache::Open({}).value();
  std::istringstream stream(lines);
  EXPECT_EQ(ImportEntries(other, stream, false).value().added, 5u);
  EXPECT_EQ(Export(other), lines);
  EXPECT_TRUE(other.IsVerified(Key(1)).value());
  EXPECT_EQ(other.Find(Key(1)).value()->samples, (std::vector<double>{1e-3, 1.0 / 3, 5e-324}));
  EXPECT_EQ(ProblemsOf(File()).value(), std::vector<std::string>{});
}

TEST_F(CacheMaintenanceTest, EveryKindOfFactIsKeptApartAndExported) {
  MeasurementCache cache = MeasurementCache::Open(File()).value();
  for (const FactTable& table : FactTables())
    ASSERT_TRUE(cache.Store(FactKey(table.fact, 1), {{1.0 + static_cast<double>(table.fact)}, ""}));
  MeasurementCache other = MeasurementCache::Open({}).value();
  std::istringstream stream(Export(cache));
  EXPECT_EQ(ImportEntries(other, stream, false).value().added, FactTables().size());
  for (const FactTable& table : FactTables()) {
    EXPECT_EQ(other.Find(FactKey(table.fact, 1)).value()->samples.front(), 1.0 + static_cast<double>(table.fact)) << table.name;
    MeasurementKey elsewhere = FactKey(table.fact, 1);
    elsewhere.context = 7;
    EXPECT_EQ(other.Find(elsewhere).value().has_value(), !table.Has(EntryPart::kContext)) << table.name;
  }
  EXPECT_EQ(Export(other), Export(cache));
}

TEST_F(CacheMaintenanceTest, WhatIsThereStaysUnlessReplaced) {
  MeasurementCache source = MeasurementCache::Open({}).value();
  ASSERT_TRUE(source.Store(Key(1), {{7.0}, ""}));
  ASSERT_TRUE(source.Store(Key(2), {{8.0}, ""}));
  const std::string lines = Export(source);
  MeasurementCache cache = MeasurementCache::Open({}).value();
  ASSERT_TRUE(cache.Store(Key(1), {{1.0}, ""}));
  std::istringstream first(lines);
  const ImportCounts kept = ImportEntries(cache, first, false).value();
  EXPECT_EQ(std::tuple(kept.added, kept.replaced, kept.kept), std::tuple(1u, 0u, 1u));
  EXPECT_EQ(cache.Find(Key(1)).value()->samples, std::vector<double>{1.0});
  std::istringstream second(lines);
  const ImportCounts replaced = ImportEntries(cache, second, true).value();
  EXPECT_EQ(std::tuple(replaced.added, replaced.replaced, replaced.kept), std::tuple(0u, 2u, 0u));
  EXPECT_EQ(cache.Find(Key(1)).value()->samples, std::vector<double>{7.0});
}

TEST_F(CacheMaintenanceTest, ABadLineIsNamedAndNothingIsImported) {
  MeasurementCache source = MeasurementCache::Open({}).value();
  ASSERT_TRUE(source.Store(Key(1), {{7.0}, ""}));
  const std::string good = Export(source);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string line = good;
    return line.replace(line.find(from), from.size(), to);
  };
  const std::pair<std::string, std::string> bad[] = {
      {"nonsense\n", "is no JSON"},
      {"\n", "is no JSON"},
      {"[1]\n", "is no JSON object"},
      {with("\"threads\":2", "\"threads\":0"), "field 'threads'"},
      {with("\"threads\":2", "\"threads\":18446744073709551615"), "field 'threads'"},
      {with("\"threads\":2,", ""), "field 'threads': is missing"},
      {with("\"threads\":2", "\"threads\":2,\"colour\":1"), "field 'colour': is not known"},
      {with("[7.0]", "[7.0,-1.0]"), "field 'samples': number 2"},
      {with("[7.0]", "[null]"), "field 'samples'"},
      {with("[7.0]", "[]"), "field 'samples'"},
      {with("0000000000000001", "1"), "field 'function_hash'"},
      {with("0000000000000001", "000000000000000g"), "field 'function_hash'"},
      {with("\"dnnl\"", "\"\""), "field 'backend'"},
      {with("\"kernel\"", "\"colour\""), "field 'fact'"},
      {with("\"invalid_reason\":\"\"", "\"invalid_reason\":\"why\""), "field 'invalid_reason'"},
      {with("\"verified\":false", "\"verified\":1"), "field 'verified'"},
  };
  for (const auto& [line, message] : bad) {
    MeasurementCache cache = MeasurementCache::Open({}).value();
    std::istringstream stream(good + line);
    const Result<ImportCounts> counts = ImportEntries(cache, stream, false);
    ASSERT_FALSE(counts.has_value()) << line;
    EXPECT_NE(counts.error().message.find("line 2: " + message), std::string::npos) << counts.error().message;
    EXPECT_EQ(Export(cache), "");
  }
}

TEST_F(CacheMaintenanceTest, PruneRemovesWhatAllConditionsName) {
  MeasurementCache cache = MeasurementCache::Open(File()).value();
  Fill(cache);
  PruneFilter filter;
  filter.not_of_device = "cpu-1";
  EXPECT_EQ(Prune(cache, filter, true).value(), 1u) << "cpu-10 is another processor";
  filter.backend = "dnnl";
  EXPECT_EQ(Prune(cache, filter, false).value(), 0u);
  filter.backend = "native";
  EXPECT_EQ(Prune(cache, filter, false).value(), 1u);
  PruneFilter invalid;
  invalid.invalid = true;
  EXPECT_EQ(Prune(cache, invalid, false).value(), 1u);
  PruneFilter old;
  old.stored_before = 1000;
  EXPECT_EQ(Prune(cache, old, false).value(), 0u);
  old.stored_before = int64_t{1} << 40;
  EXPECT_EQ(Prune(cache, old, false).value(), 3u);
  EXPECT_EQ(StatisticsOf(cache).value().entries, 0u);
}

TEST_F(CacheMaintenanceTest, StatisticsCount) {
  MeasurementCache cache = MeasurementCache::Open(File()).value();
  Fill(cache);
  const CacheStatistics statistics = StatisticsOf(cache).value();
  EXPECT_EQ(statistics.schema, kCacheSchemaVersion);
  EXPECT_EQ(std::tuple(statistics.entries, statistics.invalid, statistics.verified, statistics.samples), std::tuple(5u, 1u, 1u, 6u));
  EXPECT_EQ(statistics.by_backend.at("dnnl 2.6.3"), 2u);
  EXPECT_EQ(statistics.by_backend.size(), 2u);
  EXPECT_EQ(statistics.by_fact, (std::map<std::string, size_t>{{"decision", 1}, {"verdict", 1}}));
  EXPECT_EQ(statistics.by_device, (std::map<std::string, size_t>{{"cpu-1", 4}, {"cpu-10", 1}}));
}

TEST_F(CacheMaintenanceTest, EveryKindOfBadEntryIsAProblem) {
  {
    MeasurementCache cache = MeasurementCache::Open(File()).value();
    Fill(cache);
  }
  const std::pair<const char*, const char*> bad[] = {
      {"samples=x'00112233'", "samples"},
      {"samples=x'000000000000f07f'", "samples"},
      {"samples=x'00000000000000bf'", "samples"},
      {"samples=x'0000000000000000'", "samples"},
      {"samples=x''", "samples"},
      {"invalid_reason='why'", "invalid_reason"},
      {"backend=''", "backend"},
      {"device=''", "device"},
      {"threads=0", "threads"},
      {"variant=CAST(x'ff' AS TEXT)", "variant"},
      {"verified=7", "verified"},
      {"stored_at=-1", "stored_at"},
      {"samples='text'", "samples"},
  };
  for (const auto& [change, field] : bad) {
    const std::filesystem::path whole = folder_ / "whole.sqlite";
    std::filesystem::copy_file(File(), whole, std::filesystem::copy_options::overwrite_existing);
    Execute(std::string("UPDATE kernel SET ") + change + " WHERE function_hash=1");
    const std::vector<std::string> problems = ProblemsOf(File()).value();
    ASSERT_EQ(problems.size(), 1u) << change;
    EXPECT_NE(problems[0].find(std::string("field '") + field + "'"), std::string::npos) << problems[0];
    std::filesystem::rename(whole, File());
  }
}

TEST_F(CacheMaintenanceTest, AFileOfVersionOneIsMigrated) {
  Execute(
      "CREATE TABLE measurement(function_hash INTEGER NOT NULL, backend TEXT NOT NULL, backend_version TEXT NOT NULL, variant TEXT NOT "
      "NULL,"
      " device TEXT NOT NULL, threads INTEGER NOT NULL, protocol INTEGER NOT NULL, samples BLOB NOT NULL, invalid_reason TEXT NOT NULL,"
      " verified INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(function_hash, backend, backend_version, variant, device, threads, protocol))"
      " WITHOUT ROWID; PRAGMA user_version=1; INSERT INTO measurement VALUES(1,'dnnl','2.6.3','winograd','cpu-1/evicting 4 MiB',2," +
      std::to_string(kMeasurementProtocol) +
      ",x'000000000000f03f','',1);"
      "INSERT INTO measurement VALUES(2,'race of plans','2.6.3','dnnl','cpu-1',2,5,x'000000000000f03f','',0)");
  EXPECT_EQ(ProblemsOf(File()).value(), std::vector<std::string>{});
  MeasurementCache cache = MeasurementCache::Open(File()).value();
  EXPECT_EQ(cache.Find(Key(1)).value()->samples, std::vector<double>{1.0});
  EXPECT_TRUE(cache.IsVerified(Key(1)).value());
  ASSERT_TRUE(cache.Store(Key(2), {{1.0}, ""}));
  EXPECT_EQ(StatisticsOf(cache).value().schema, kCacheSchemaVersion);
  PruneFilter old;
  old.stored_before = 1;
  EXPECT_EQ(Prune(cache, old, false).value(), 1u) << "of unknown time";
}

TEST_F(CacheMaintenanceTest, ADatabaseOfAnotherProgramOrVersionIsLeftAlone) {
  for (const char* content : {"CREATE TABLE bookmarks(a)", "CREATE TABLE measurement(a); PRAGMA user_version=99"}) {
    std::filesystem::remove(File());
    Execute(content);
    const std::string before = ReadFile(File()).value();
    EXPECT_FALSE(MeasurementCache::Open(File()).has_value());
    EXPECT_FALSE(ProblemsOf(File()).has_value());
    EXPECT_EQ(ReadFile(File()).value(), before);
  }
  EXPECT_FALSE(MeasurementCache::Open(folder_ / "none.sqlite", MeasurementCache::Missing::kFail).has_value());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "none.sqlite"));
}

TEST_F(CacheMaintenanceTest, SeveralProcessesCreateAndFillOneFile) {
  constexpr int kProcesses = 6;
  constexpr uint64_t kEach = 60;
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    // Each opens anew for every entry: openings, with their creation of the table, are what collides.
    for (uint64_t i = 0; i < kEach; ++i) {
      Result<MeasurementCache> cache = MeasurementCache::Open(File());
      if (!cache || !cache->Store(Key(static_cast<uint64_t>(process) * kEach + i), {{1e-3}, ""})) ::_exit(1);
    }
    ::_exit(0);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(ProblemsOf(File()).value(), std::vector<std::string>{});
  EXPECT_EQ(StatisticsOf(MeasurementCache::Open(File()).value()).value().entries, kProcesses * kEach);
}

}  // namespace
}  // namespace collage
