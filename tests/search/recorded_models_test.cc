// Real models at recorded prices: the plans are those that were found when the prices were taken, choice by choice. What is added to the
// search for other devices, forms or limits must not change them. data/README.md says how a record is made.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "collage/search/recorded.h"
#include "collage/search/searcher.h"

namespace collage {
namespace {

using Json = nlohmann::json;

class RecordedModelsTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::ifstream file("tests/search/data/" + std::string(GetParam()) + ".json");
    const Json json = Json::parse(file);
    Result<RecordedProblem> parsed = ParseRecorded(json.at("recorded").dump());
    ASSERT_TRUE(parsed) << parsed.error().message;
    recorded_ = std::move(*parsed);
    for (const Json& choice : json.at("optimum")) optimum_.push_back({choice.at(0), choice.at(1)});
  }

  [[nodiscard]] Result<SearchResult> Search(const std::string& searcher) const {
    return FindSearcher(searcher).value().search(recorded_.problem);
  }

  static std::string Text(const std::vector<SearchChoice>& choices) {
    Json json = Json::array();
    for (const SearchChoice& choice : choices) json.push_back({choice.candidate, choice.variant});
    return json.dump();
  }

  RecordedProblem recorded_;
  std::vector<SearchChoice> optimum_;
};

TEST_P(RecordedModelsTest, TheSweepFindsThePlanOfThen) {
  const Result<SearchResult> found = Search("sweep");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->is_proven);
  EXPECT_EQ(Text(found->choices), Text(optimum_));
}

TEST_P(RecordedModelsTest, TheIntegerProgramFindsNoneThatIsCheaper) {
  const Result<SearchResult> swept = Search("sweep");
  const Result<SearchResult> exact = Search("exact");
  ASSERT_TRUE(exact) << exact.error().message;
  EXPECT_TRUE(exact->is_proven);
  EXPECT_EQ(exact->cost.ToSeconds(), swept->cost.ToSeconds());
}

INSTANTIATE_TEST_SUITE_P(Models, RecordedModelsTest, testing::Values("squeezenet", "bert_encoder"),
                         [](const testing::TestParamInfo<const char*>& info) { return info.param; });

}  // namespace
}  // namespace collage
