#include "collage/backend/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "collage/backend/entry.h"

namespace collage {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kObjects = COLLAGE_OBJECTS;

/// The search path is read when backends are first asked for.
class SearchPath : public ::testing::Environment {
 public:
  void SetUp() override { ::setenv("COLLAGE_BACKENDS", (kObjects + ":/nowhere/libcollage_backend_lost.so").c_str(), 1); }
};
const auto* const kSearchPath = ::testing::AddGlobalTestEnvironment(new SearchPath);

std::vector<BackendRecord> Named(const std::string& name) {
  std::vector<BackendRecord> records = AvailableBackends(Device{});
  std::erase_if(records, [&](const BackendRecord& record) { return record.name != name; });
  return records;
}

/// Whether a shared object of such a name is in this process.
bool IsMapped(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(name) != std::string::npos) return true;
  }
  return false;
}

std::string Refusal(const std::filesystem::path& file) {
  const Status added = AddBackend(file);
  return added ? "" : added.error().message;
}

TEST(RegistryTest, ABackendIsAddedOnce) {
  EXPECT_EQ(Refusal(COLLAGE_NULL_BACKEND), "");
  EXPECT_EQ(Refusal(COLLAGE_NULL_BACKEND), "");
  ASSERT_EQ(Named("null").size(), 1U);
  const Result<const Backend*> backend = FindBackend("null", Device{});
  ASSERT_TRUE(backend) << backend.error().message;
  EXPECT_EQ((*backend)->Name(), "null");
}

TEST(RegistryTest, FindingOneOpensNoOther) {
  // In a process of its own: others of these tests open all.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto find = [] {
    const bool is_found = FindBackend("reference", Device{}).has_value();
    const bool is_alone = IsMapped("libcollage_backend_reference") && !IsMapped("libcollage_backend_native");
    std::exit(is_found && is_alone ? 0 : 1);
  };
  EXPECT_EXIT(find(), ::testing::ExitedWithCode(0), "");
}

TEST(RegistryTest, ThoseOfTheSearchPathAreThereAndWhatIsWrongWithOthersIsSaid) {
  ASSERT_EQ(Named("another").size(), 1U);
  EXPECT_TRUE(Named("another")[0].presence.present);
  ASSERT_EQ(Named("lost").size(), 1U);
  EXPECT_THAT(Named("lost")[0].presence.reason, HasSubstr("/nowhere/libcollage_backend_lost.so"));
  ASSERT_EQ(Named("other_contract").size(), 1U);
  EXPECT_THAT(Named("other_contract")[0].presence.reason, HasSubstr("was built for contract"));
}

TEST(RegistryTest, TheBytesOfAFileAreItsVersionWhereItStatesNone) {
  ASSERT_EQ(Named("another").size(), 1U);
  EXPECT_THAT(Named("another")[0].presence.version, ::testing::MatchesRegex("1\\+[0-9a-f]+"));
}

TEST(RegistryTest, AnotherContractIsRefused) {
  const std::string here = std::to_string(kBackendContract);
  const std::string there = std::to_string(kBackendContract + 3);
  EXPECT_EQ(Refusal(kObjects + "/other_contract.so"), kObjects + "/other_contract.so was built for contract " + there +
                                                          " of backends, this is " + here + "; build it with the headers of this Collage");
}

TEST(RegistryTest, OtherHeadersAreRefused) {
  EXPECT_THAT(Refusal(kObjects + "/other_headers.so"),
              StartsWith(kObjects + "/other_headers.so was built with other headers (012345678901, this Collage has " + kContractHeaders));
}

TEST(RegistryTest, WhatIsNoBackendIsRefused) {
  EXPECT_THAT(Refusal("/nowhere/x.so"), HasSubstr("/nowhere/x.so: cannot open shared object file"));
  const std::filesystem::path pool = std::filesystem::path(COLLAGE_NULL_BACKEND).parent_path().parent_path() / "libcollage_openmp.so";
  EXPECT_EQ(Refusal(pool), pool.string() + ": is no backend: it does not export collage_backend_entry");
}

TEST(RegistryTest, ATakenNameIsRefused) {
  EXPECT_EQ(Refusal(kObjects + "/taken_name.so"), kObjects + "/taken_name.so: there is another backend named 'dnnl'");
}

TEST(RegistryTest, AnUnknownOneIsAnErrorThatTellsHowToNameIt) {
  const Result<const Backend*> backend = FindBackend("rowwise", Device{});
  ASSERT_FALSE(backend);
  EXPECT_THAT(backend.error().message, StartsWith("unknown backend 'rowwise'; available: "));
  EXPECT_THAT(backend.error().message, HasSubstr("--plugin or COLLAGE_BACKENDS"));
}

}  // namespace
}  // namespace collage
