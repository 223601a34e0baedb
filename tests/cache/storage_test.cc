// What a cache promises, of a file of SQLite and of a PostgreSQL server (tests/postgresql_server.py starts it).

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "collage/cache/cache_database.h"
#include "collage/cache/cache_maintenance.h"

namespace collage {
namespace {

MeasurementKey Key(uint64_t hash) { return {hash, "dnnl", "2.6.3", "winograd", "cpu-1", 2}; }

enum class Storage { kFile, kServer };

class StorageTest : public testing::TestWithParam<Storage> {
 protected:
  void SetUp() override {
    if (GetParam() == Storage::kFile) {
      folder_ = std::filesystem::path(testing::TempDir()) / ("storage_test_" + std::to_string(::getpid()));
      name_ = folder_ / "cache.sqlite";
      return;
    }
    const char* url = std::getenv("COLLAGE_TEST_POSTGRESQL");
    ASSERT_NE(url, nullptr) << "run by tests/postgresql_server.py";
    name_ = url;
  }
  void TearDown() override {
    if (GetParam() == Storage::kFile) {
      std::filesystem::remove_all(folder_);
    } else if (!name_.empty()) {
      ASSERT_TRUE(OpenCacheDatabase(name_, true).value()->Execute("DROP SCHEMA IF EXISTS collage CASCADE"));
    }
  }
  [[nodiscard]] std::string Exported() const {
    std::string lines;
    const MeasurementCache cache = MeasurementCache::Open(name_, MeasurementCache::Missing::kFail).value();
    EXPECT_TRUE(ForEachEntry(cache, [&](const CacheEntry& entry) {
      lines += ToJsonLine(entry) + "\n";
      return Status{};
    }));
    return lines;
  }

  std::filesystem::path folder_;
  std::string name_;
};

TEST_P(StorageTest, KeepsMeasurementsAcrossOpenings) {
  {
    MeasurementCache cache = MeasurementCache::Open(name_).value();
    ASSERT_TRUE(cache.Store(Key(1), {{1e-3, 2e-3, 4e-3}, "", {1, 2, 3}}));
    ASSERT_TRUE(cache.Store(Key(~uint64_t{0}), {{}, "the library refused"}));
  }
  const MeasurementCache cache = MeasurementCache::Open(name_, MeasurementCache::Missing::kFail).value();
  const std::optional<Measurement> found = cache.Find(Key(1)).value();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->samples, (std::vector<double>{1e-3, 2e-3, 4e-3}));
  EXPECT_EQ(found->anchors, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(cache.Find(Key(~uint64_t{0})).value()->invalid_reason, "the library refused");
}

TEST_P(StorageTest, EveryPartOfTheKeyCounts) {
  MeasurementCache cache = MeasurementCache::Open(name_).value();
  ASSERT_TRUE(cache.Store(Key(1), {{1e-3}, ""}));
  MeasurementKey other = Key(1);
  other.threads = 1;
  EXPECT_FALSE(cache.Find(other).value().has_value());
  other = Key(1);
  other.variant = "direct";
  EXPECT_FALSE(cache.Find(other).value().has_value());
  other = Key(1);
  other.backend_version = "3";
  EXPECT_FALSE(cache.Find(other).value().has_value());
  EXPECT_FALSE(cache.Find(Key(3)).value().has_value());
}

TEST_P(StorageTest, TheLastStoreOfAKeyHolds) {
  MeasurementCache cache = MeasurementCache::Open(name_).value();
  ASSERT_TRUE(cache.Store(Key(1), {{1e-3}, ""}));
  ASSERT_TRUE(cache.StoreVerified(Key(1)));
  ASSERT_TRUE(cache.Store(Key(1), {{}, "it crashed"}));
  EXPECT_EQ(cache.Find(Key(1)).value()->invalid_reason, "it crashed");
  EXPECT_TRUE(cache.Find(Key(1)).value()->samples.empty());
  EXPECT_FALSE(cache.IsVerified(Key(1)).value());
}

TEST_P(StorageTest, VerificationBelongsToAMeasurement) {
  MeasurementCache cache = MeasurementCache::Open(name_).value();
  ASSERT_TRUE(cache.Store(Key(1), {{1e-3}, ""}));
  EXPECT_FALSE(cache.IsVerified(Key(1)).value());
  ASSERT_TRUE(cache.StoreVerified(Key(1)));
  EXPECT_TRUE(cache.IsVerified(Key(1)).value());
}

TEST_P(StorageTest, FactsOfAllKindsAreKept) {
  MeasurementCache cache = MeasurementCache::Open(name_).value();
  for (const FactTable& table : FactTables()) {
    MeasurementKey key = Key(5);
    key.fact = table.fact;
    key.context = 6;
    ASSERT_TRUE(cache.Store(key, {{0.25}, ""})) << table.name;
    EXPECT_EQ(cache.Find(key).value()->samples, std::vector<double>{0.25}) << table.name;
  }
  EXPECT_EQ(ProblemsOf(name_).value(), std::vector<std::string>());
}

TEST_P(StorageTest, AnotherCacheIsNotMadeWhereOneIsAskedFor) {
  EXPECT_FALSE(MeasurementCache::Open(name_, MeasurementCache::Missing::kFail).has_value());
  EXPECT_FALSE(ProblemsOf(name_).has_value());
  EXPECT_FALSE(MeasurementCache::Open(name_, MeasurementCache::Missing::kFail).has_value());
}

TEST_P(StorageTest, ReasonsOfAnyBytesAreKeptAsFarAsTheyAreText) {
  MeasurementCache cache = MeasurementCache::Open(name_).value();
  ASSERT_TRUE(cache.Store(Key(1), {{},
                                   std::string("a\xff"
                                               "b\0c",
                                               5)}));
  const std::string reason = cache.Find(Key(1)).value()->invalid_reason;
  EXPECT_TRUE(reason.starts_with("a") && reason.ends_with("c")) << reason;
  EXPECT_EQ(ProblemsOf(name_).value(), std::vector<std::string>());
}

TEST_P(StorageTest, ExportsAreTheSameWhereverPricesLie) {
  MeasurementCache cache = MeasurementCache::Open(name_).value();
  MeasurementCache other = MeasurementCache::Open({}).value();
  for (const uint64_t hash : {uint64_t{7}, ~uint64_t{0}, uint64_t{1}}) {
    for (const char* variant : {"b", "B", "a", "\xc3\xa4", "_"}) {
      MeasurementKey key = Key(hash);
      key.variant = variant;
      ASSERT_TRUE(cache.Store(key, {{1e-3, 3e-3}, "", {5, 6}}));
    }
  }
  const std::string lines = Exported();
  std::istringstream stream(lines);
  ASSERT_EQ(ImportEntries(other, stream, false).value().added, 15u);
  std::string again;
  ASSERT_TRUE(ForEachEntry(other, [&](const CacheEntry& entry) {
    again += ToJsonLine(entry) + "\n";
    return Status{};
  }));
  EXPECT_EQ(lines, again);
}

TEST_P(StorageTest, ImportsKeepOrReplaceAndAreWholeOrNothing) {
  MeasurementCache cache = MeasurementCache::Open(name_).value();
  ASSERT_TRUE(cache.Store(Key(1), {{1e-3}, ""}));
  ASSERT_TRUE(cache.Store(Key(2), {{2e-3}, ""}));
  const std::string lines = Exported();
  ASSERT_TRUE(cache.Store(Key(1), {{9e-3}, ""}));
  std::istringstream kept(lines);
  const ImportCounts counts = ImportEntries(cache, kept, false).value();
  EXPECT_EQ(counts.kept, 2u);
  EXPECT_EQ(cache.Find(Key(1)).value()->samples.front(), 9e-3);
  std::istringstream replaced(lines);
  EXPECT_EQ(ImportEntries(cache, replaced, true).value().replaced, 2u);
  EXPECT_EQ(cache.Find(Key(1)).value()->samples.front(), 1e-3);
  ASSERT_EQ(Prune(cache, {.invalid = true}, false).value(), 0u);
  std::istringstream broken(lines + "{}\n");
  EXPECT_FALSE(ImportEntries(cache, broken, true).has_value());
  EXPECT_EQ(Exported(), lines);
}

TEST_P(StorageTest, PruneTakesWhatAllConditionsHoldOf) {
  MeasurementCache cache = MeasurementCache::Open(name_).value();
  MeasurementKey other = Key(2);
  other.device = "cpu-1/evicting 4 MiB";
  MeasurementKey elsewhere = Key(3);
  elsewhere.device = "cpu-11";
  MeasurementKey of_another_machine = Key(4);
  of_another_machine.device = "cpu-1#2/evicting 4 MiB";
  ASSERT_TRUE(cache.Store(of_another_machine, {{1e-3}, ""}));
  ASSERT_TRUE(cache.Store(Key(1), {{1e-3}, ""}));
  ASSERT_TRUE(cache.Store(other, {{}, "it crashed"}));
  ASSERT_TRUE(cache.Store(elsewhere, {{}, "it hung"}));
  EXPECT_EQ(Prune(cache, {.backend = "openvino"}, false).value(), 0u);
  EXPECT_EQ(Prune(cache, {.backend = "dnnl", .backend_version = "2.6.3", .invalid = true}, true).value(), 2u);
  EXPECT_EQ(Prune(cache, {.stored_before = 1000}, false).value(), 0u);
  EXPECT_EQ(Prune(cache, {.not_of_device = "cpu-1"}, false).value(), 1u);
  EXPECT_EQ(Prune(cache, {.backend = "dnnl", .backend_version = "2.6.3", .invalid = true}, false).value(), 1u);
  const CacheStatistics statistics = StatisticsOf(cache).value();
  EXPECT_EQ(statistics.entries, 2u);
  EXPECT_EQ(statistics.schema, kCacheSchemaVersion);
  EXPECT_GT(statistics.bytes, 0u);
}

TEST_P(StorageTest, AnOlderOneGetsTheTablesThatItLacksAndANewerOneIsRefused) {
  ASSERT_TRUE(MeasurementCache::Open(name_).value().Store(Key(1), {{1e-3}, ""}));
  const auto make_version = [this](int version) {
    const std::string number = std::to_string(version);
    const std::string told = GetParam() == Storage::kFile ? "PRAGMA user_version=" + number : "UPDATE schema_version SET version=" + number;
    ASSERT_TRUE(OpenCacheDatabase(name_, false).value()->Execute(told));
  };
  ASSERT_TRUE(OpenCacheDatabase(name_, false).value()->Execute("DROP TABLE known"));
  make_version(4);
  {
    MeasurementCache cache = MeasurementCache::Open(name_).value();
    EXPECT_EQ(cache.Find(Key(1)).value()->samples, std::vector<double>{1e-3});
    MeasurementKey known = Key(2);
    known.fact = Fact::kKnown;
    ASSERT_TRUE(cache.Store(known, {{0}, ""}));
    EXPECT_EQ(cache.Find(known).value()->samples, std::vector<double>{0});
    EXPECT_EQ(StatisticsOf(cache).value().schema, kCacheSchemaVersion);
  }
  make_version(kCacheSchemaVersion + 1);
  EXPECT_FALSE(MeasurementCache::Open(name_).has_value());
}

TEST_P(StorageTest, ProcessesMayCreateAndWriteItTogether) {
  constexpr uint64_t kProcesses = 6;
  constexpr uint64_t kEach = 40;
  std::vector<pid_t> children;
  for (uint64_t child = 0; child < kProcesses; ++child) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    bool is_whole = true;
    {
      Result<MeasurementCache> cache = MeasurementCache::Open(name_);
      // Half of the keys are everybody's.
      for (uint64_t i = 0; is_whole && i < kEach; ++i)
        is_whole = cache && cache->Store(Key(i % 2 ? i : 1000 * child + i), {{1e-3 * static_cast<double>(child + 1)}, ""});
    }
    ::_exit(is_whole ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(ProblemsOf(name_).value(), std::vector<std::string>());
  EXPECT_EQ(StatisticsOf(MeasurementCache::Open(name_).value()).value().entries, kEach / 2 + kProcesses * kEach / 2);
}

TEST_P(StorageTest, ATransactionThatIsNotCommittedLeavesNothing) {
  MeasurementCache cache = MeasurementCache::Open(name_).value();
  {
    const CacheTransaction transaction = CacheTransaction::Begin(cache.database()).value();
    ASSERT_TRUE(cache.Store(Key(1), {{1e-3}, ""}));
  }
  EXPECT_FALSE(cache.Find(Key(1)).value().has_value());
}

INSTANTIATE_TEST_SUITE_P(OfAFile, StorageTest, testing::Values(Storage::kFile));
INSTANTIATE_TEST_SUITE_P(OfAServer, StorageTest, testing::Values(Storage::kServer));

TEST(CacheUrlTest, PasswordsAreNotShown) {
  EXPECT_EQ(WithoutPassword("postgresql://me:secret@host:5432/prices"), "postgresql://me@host:5432/prices");
  EXPECT_EQ(WithoutPassword("postgres://host:5432/prices?user=me&password=secret&sslmode=require"),
            "postgres://host:5432/prices?user=me&password=&sslmode=require");
  EXPECT_EQ(WithoutPassword("postgresql://me@host:5432/a:b@c"), "postgresql://me@host:5432/a:b@c");
  EXPECT_EQ(WithoutPassword("/tmp/a:b@c.sqlite"), "/tmp/a:b@c.sqlite");
  EXPECT_FALSE(IsCacheUrl("postgresql.sqlite"));
}

TEST(CacheUrlTest, ADeadServerIsOneLineThatNamesIt) {
  const Result<MeasurementCache> cache = MeasurementCache::Open("postgresql://me:secret@127.0.0.1:1/prices");
  ASSERT_FALSE(cache.has_value());
  EXPECT_TRUE(cache.error().message.starts_with("cache postgresql://me@127.0.0.1:1/prices: ")) << cache.error().message;
  EXPECT_EQ(cache.error().message.find('\n'), std::string::npos);
  EXPECT_EQ(cache.error().message.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace collage
