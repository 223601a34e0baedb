// Every case of tests/golden/*.json: a program, a query and the answer that was reasoned from the definitions by hand ("expected"; or
// "expected_error", a part of the error; "expected_part", some fields of the answer). Lists are compared without order, as names in
// answers are sets.
//
// COLLAGE_UPDATE_GOLDEN=1 writes the answers of this build into the files instead. Read every line of that difference.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "collage/query/query.h"
#include "collage/support/file.h"

namespace collage {
namespace {

constexpr const char* kFolder = "tests/golden";

std::vector<std::string> GoldenFiles() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().stem().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// The same with lists sorted and fields in order of name.
nlohmann::json Canonical(const Json& value) {
  if (value.is_array()) {
    std::vector<nlohmann::json> items;
    for (const Json& item : value) items.push_back(Canonical(item));
    std::sort(items.begin(), items.end());
    return items;
  }
  if (!value.is_object()) return nlohmann::json::parse(value.dump());
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [name, field] : value.items()) object[name] = Canonical(field);
  return object;
}

/// An answer, its objects cut down to the fields that are expected; lists of objects entry by entry.
Json PartLike(const Json& expected, const Json& answer) {
  if (expected.is_array() && answer.is_array() && expected.size() == answer.size()) {
    Json part = Json::array();
    for (size_t i = 0; i < expected.size(); ++i) part.push_back(PartLike(expected[i], answer[i]));
    return part;
  }
  if (!expected.is_object() || !answer.is_object()) return answer;
  Json part = Json::object();
  for (const auto& [name, field] : expected.items()) {
    if (answer.contains(name)) part[name] = name == "devices" ? answer[name] : PartLike(field, answer[name]);
  }
  return part;
}

void Update(const std::string& path, Json& cases, const Json& answers) {
  for (size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].contains("expected_part")) continue;
    cases[i].erase("expected");
    cases[i].erase("expected_error");
    if (answers[i].contains("answer")) cases[i]["expected"] = answers[i]["answer"];
    if (answers[i].contains("error")) cases[i]["expected_error"] = answers[i]["error"];
  }
  std::string text;
  for (const Json& entry : cases) text += (text.empty() ? "[\n" : ",\n") + entry.dump();
  ASSERT_TRUE(WriteFileAtomically(path, text + "\n]\n"));
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, Answers) {
  const std::string path = std::string(kFolder) + "/" + GetParam() + ".json";
  const Result<std::string> text = ReadFile(path);
  ASSERT_TRUE(text) << text.error().message;
  Json cases = Json::parse(*text);
  const Result<Json> answers = AnswerQueries(*text);
  ASSERT_TRUE(answers) << answers.error().message;
  ASSERT_EQ(answers->size(), cases.size());
  if (std::getenv("COLLAGE_UPDATE_GOLDEN")) return Update(path, cases, *answers);
  std::set<std::string> names;
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i]["name"].dump());
    EXPECT_TRUE(names.insert(cases[i]["name"]).second) << "two cases of one name";
    EXPECT_EQ((*answers)[i]["name"], cases[i]["name"]);
    if (cases[i].contains("expected_error")) {
      const std::string error = (*answers)[i].value("error", "");
      EXPECT_NE(error.find(cases[i]["expected_error"].get<std::string>()), std::string::npos) << (*answers)[i].dump();
      EXPECT_FALSE(cases[i]["expected_error"].get<std::string>().empty());
    } else if (cases[i].contains("expected_part")) {
      ASSERT_TRUE((*answers)[i].contains("answer")) << (*answers)[i].dump();
      EXPECT_EQ(Canonical(PartLike(cases[i]["expected_part"], (*answers)[i]["answer"])).dump(1),
                Canonical(cases[i]["expected_part"]).dump(1));
    } else {
      ASSERT_TRUE(cases[i].contains("expected"));
      ASSERT_TRUE((*answers)[i].contains("answer")) << (*answers)[i].dump();
      EXPECT_EQ(Canonical((*answers)[i]["answer"]).dump(1), Canonical(cases[i]["expected"]).dump(1));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Golden, testing::ValuesIn(GoldenFiles()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Query, AMalformedFileIsAnError) {
  EXPECT_FALSE(AnswerQueries("{"));
  EXPECT_FALSE(AnswerQueries("3"));
}

TEST(Query, AMalformedCaseIsAnErrorOfItsOwn) {
  const Result<Json> answers = AnswerQueries(R"([3, {"name": "a"}, {"name": "b", "program": "fn (%x: float32) { %0 = exp(%x); %0 }",
                                                 "query": {"subgraph": {"inside": ["%0"]}}}])");
  ASSERT_TRUE(answers);
  ASSERT_EQ(answers->size(), 3u);
  EXPECT_TRUE((*answers)[0].contains("error"));
  EXPECT_EQ((*answers)[1]["name"], "a");
  EXPECT_TRUE((*answers)[1].contains("error"));
  EXPECT_EQ((*answers)[2]["answer"]["valid"], true);
}

TEST(Query, OneCaseNeedsNoList) {
  const Result<Json> answers = AnswerQueries(R"({"name": "x", "query": {}, "program": "fn () { 1f }"})");
  ASSERT_TRUE(answers);
  ASSERT_EQ(answers->size(), 1u);
  EXPECT_EQ((*answers)[0]["name"], "x");
}

}  // namespace
}  // namespace collage
