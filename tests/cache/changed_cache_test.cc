// Caches that somebody has changed with SQLite itself, whose pages and indices are whole again: whatever is in them, every question gets an
// answer or one line.

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "collage/cache/cache_maintenance.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

class ChangedCacheTest : public testing::Test {
 protected:
  void TearDown() override { RemoveFiles(); }

  void RemoveFiles() const {
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) std::filesystem::remove(file_.string() + suffix);
  }

  void Write() const {
    RemoveFiles();
    MeasurementCache cache = MeasurementCache::Open(file_).value();
    for (const MeasurementKey& key : keys_) {
      ASSERT_TRUE(cache.Store(key, {{1e-3, 2e-3, 1.5e-3}, ""}));
    }
    ASSERT_TRUE(cache.StoreVerified(keys_[0]));
    ASSERT_TRUE(cache.Store(keys_[1], {{}, "it crashed"}));
  }

  /// What a query gives, its first column.
  std::vector<std::string> Execute(const std::string& text) const {
    std::vector<std::string> rows;
    sqlite3* handle = nullptr;
    EXPECT_EQ(sqlite3_open(file_.c_str(), &handle), SQLITE_OK);
    const auto take = [](void* into, int, char** values, char**) {
      static_cast<std::vector<std::string>*>(into)->emplace_back(values[0] ? values[0] : "");
      return 0;
    };
    // Constraints of the tables refuse some changes, which is an answer too.
    sqlite3_exec(handle, text.c_str(), take, &rows, nullptr);
    sqlite3_close(handle);
    return rows;
  }

  std::string Change(std::mt19937_64& random) const {
    const std::vector<std::string> tables = Execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
    const std::string& table = tables[random() % tables.size()];
    const std::vector<std::string> columns = Execute("SELECT name FROM pragma_table_info('" + table + "')");
    const std::string& column = columns[random() % columns.size()];
    const std::string value = kValues[random() % std::size(kValues)];
    switch (random() % 12) {
      case 0:
        return "DROP TABLE " + table;
      case 1:
        return "ALTER TABLE " + table + " RENAME COLUMN " + column + " TO other";
      case 2:
        return "PRAGMA user_version = " + std::to_string(random() % 3 == 0 ? -1 : static_cast<int64_t>(random() % 12));
      case 3:
        return "DELETE FROM " + table;
      default:
        return "UPDATE " + table + " SET " + column + " = " + value;
    }
  }

  static constexpr const char* kValues[] = {"NULL",
                                            "-1",
                                            "0",
                                            "9223372036854775807",
                                            "-9223372036854775808",
                                            "1e308",
                                            "-0.5",
                                            "''",
                                            "'x'",
                                            "x''",
                                            "x'00'",
                                            "x'ffffffffffffffff'",
                                            "x'000000000000f07f'",
                                            "randomblob(7)",
                                            "zeroblob(4096)",
                                            "x'6a0a6b'",
                                            "'a' || char(10) || 'b'",
                                            "zeroblob(1000003)"};
  const std::filesystem::path file_ =
      std::filesystem::path(testing::TempDir()) / ("changed_cache_" + std::to_string(::getpid()) + ".sqlite");
  const std::vector<MeasurementKey> keys_ = {{1, "dnnl", "2.6.3", "winograd", "cpu-1", 2},
                                             {2, "native", "1", "default", "cpu-1", 2},
                                             {3, "dnnl", "2.6.3", "direct", "cpu-1", 2, 7, Fact::kRace},
                                             {4, "", "", "", "cpu-1", 2, 9, Fact::kVerdict}};
};

void ExpectOneLine(const Error& error) {
  EXPECT_FALSE(error.message.empty());
  EXPECT_EQ(error.message.find('\n'), std::string::npos) << error.message;
}

TEST_F(ChangedCacheTest, EveryQuestionGetsAnAnswerOrOneLine) {
  size_t answered = 0;
  size_t refused = 0;
  const auto take = [&](const auto& result) {
    result ? ++answered : ++refused;
    if (!result) ExpectOneLine(result.error());
  };
  for (uint64_t seed = 0; seed < Rounds(200); ++seed) {
    std::mt19937_64 random(seed);
    Write();
    std::string changes;
    for (uint64_t count = 1 + random() % 2; count > 0; --count) {
      const std::string change = Change(random);
      Execute(change);
      changes += change + "; ";
    }
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + changes);
    take(ProblemsOf(file_));
    Result<MeasurementCache> cache = MeasurementCache::Open(file_);
    take(cache);
    if (!cache) continue;
    for (const MeasurementKey& key : keys_) take(cache->Find(key));
    take(cache->IsVerified(keys_[0]));
    take(StatisticsOf(*cache));
    take(ForEachEntry(*cache, [](const CacheEntry& entry) {
      EXPECT_EQ(ToJsonLine(entry).find('\n'), std::string::npos);
      return Status{};
    }));
    PruneFilter filter;
    filter.backend = "dnnl";
    take(Prune(*cache, filter, /*dry_run=*/false));
    take(cache->Store(keys_[0], {{3e-3}, ""}));
  }
  EXPECT_GT(answered, Rounds(200));
  EXPECT_GT(refused, Rounds(20));
}

}  // namespace
}  // namespace collage
