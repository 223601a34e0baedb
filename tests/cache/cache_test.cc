#include "collage/cache/cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "collage/support/file.h"

namespace collage {
namespace {

class CacheTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = std::filesystem::path(testing::TempDir()) / ("cache_test_" + std::to_string(::getpid())); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::filesystem::path File() const { return folder_ / "cache.sqlite"; }
  std::filesystem::path folder_;
};

MeasurementKey Key(uint64_t hash) { return {hash, "dnnl", "2.6.3", "winograd", "cpu-1", 2}; }

TEST_F(CacheTest, AFileThatIsNoDatabaseIsAnErrorAndIsLeftAlone) {
  std::filesystem::create_directories(folder_);
  std::ofstream(File()) << std::string(5000, 'x');
  const Result<MeasurementCache> cache = MeasurementCache::Open(File());
  ASSERT_FALSE(cache.has_value());
  EXPECT_NE(cache.error().message.find("not a database"), std::string::npos) << cache.error().message;
  EXPECT_EQ(ReadFile(File()).value(), std::string(5000, 'x'));
}

TEST_F(CacheTest, ADamagedDatabaseIsAnError) {
  {
    MeasurementCache cache = MeasurementCache::Open(File()).value();
    for (uint64_t i = 0; i < 200; ++i) ASSERT_TRUE(cache.Store(Key(i), {std::vector<double>(100, 1e-3), ""}));
  }
  std::string content = ReadFile(File()).value();
  for (size_t i = 4096; i < content.size(); i += 7) content[i] = static_cast<char>(content[i] ^ 0x5a);
  ASSERT_TRUE(WriteFileAtomically(File(), content));
  EXPECT_FALSE(MeasurementCache::Open(File()).has_value());
}

TEST_F(CacheTest, ASmallFileOfSomethingElseIsLeftAlone) {
  std::filesystem::create_directories(File().parent_path());
  ASSERT_TRUE(WriteFileAtomically(File(), "notes"));
  const Result<MeasurementCache> cache = MeasurementCache::Open(File());
  ASSERT_FALSE(cache.has_value());
  EXPECT_NE(cache.error().message.find("not a database"), std::string::npos);
  EXPECT_EQ(ReadFile(File()).value(), "notes");
}

TEST_F(CacheTest, SurvivesAKillWhileStoring) {
  for (int round = 0; round < 5; ++round) {
    int stored[2];
    ASSERT_EQ(::pipe(stored), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      Result<MeasurementCache> cache = MeasurementCache::Open(File());
      for (uint64_t i = 0; cache && i < 1000000; ++i) {
        (void)cache->Store(Key(i), {std::vector<double>(50, 1e-3), ""});
        if (i == 0 && ::write(stored[1], "x", 1) != 1) ::_exit(1);
      }
      ::_exit(0);
    }
    char byte = 0;
    ASSERT_EQ(::read(stored[0], &byte, 1), 1);
    ::close(stored[0]);
    ::close(stored[1]);
    ::usleep(5000 * static_cast<useconds_t>(round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const Result<MeasurementCache> cache = MeasurementCache::Open(File());
    ASSERT_TRUE(cache.has_value()) << cache.error().message;
    EXPECT_TRUE(cache->Find(Key(0)).value().has_value());
  }
}

}  // namespace
}  // namespace collage
