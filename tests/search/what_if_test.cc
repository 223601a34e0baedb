#include "collage/search/what_if.h"

#include <gtest/gtest.h>

#include "collage/search/shortest_path.h"
#include "tests/search/random_problem.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

/// Prices are known, so they are their own bounds.
std::vector<std::vector<Cost>> TruePrices(const SearchProblem& problem) {
  std::vector<std::vector<Cost>> prices;
  for (const SearchCandidate& candidate : problem.candidates) {
    prices.emplace_back();
    for (const SearchVariant& variant : candidate.variants) prices.back().push_back(variant.cost);
  }
  return prices;
}

/// conv -> relu -> conv. "library" takes either convolution for 10 us, with the activation for 11; "native" anything: 14, 3, 14.
RecordedProblem Three() {
  SearchProblem problem;
  problem.node_count = 3;
  problem.backend_count = 2;
  problem.tensors = {{0, {1}, false}, {1, {2}, false}, {2, {}, true}, {SearchTensor::kOutside, {0}, false}};
  problem.transition.assign(2, std::vector<Cost>(2, Cost::Microseconds(1)));
  const auto add = [&](const std::vector<size_t>& inside, size_t backend, double price) {
    SearchCandidate candidate;
    candidate.inside = IndexSet(inside);
    candidate.backend = backend;
    candidate.inputs = {inside.front() == 0 ? 3 : inside.front() - 1};
    candidate.outputs = {inside.back()};
    candidate.variants = {{Cost::Microseconds(price), {0}, {0}}};
    problem.candidates.push_back(std::move(candidate));
  };
  add({0}, 0, 10);
  add({2}, 0, 10);
  add({0, 1}, 0, 11);
  add({0}, 1, 14);
  add({1}, 1, 3);
  add({2}, 1, 14);
  return Record(problem, TruePrices(problem), {"library", "native"}, {"%0", "%1", "%2"}, {"nn.conv2d", "nn.relu", "nn.conv2d"});
}

double After(const WhatIf& question) { return Answer(Three(), question).value().after.cost.ToMicroseconds(); }
std::string ErrorOf(const WhatIf& question) { return Answer(Three(), question).error().message; }

RecordedProblem ThreeOfAModel() {
  RecordedProblem recorded = Three();
  recorded.onnx_nodes = {{"conv1", "bn1"}, {"relu1"}, {"conv2"}};
  return recorded;
}

TEST(WhatIfTest, NodesOfTheModelAreNamedByTheirNames) {
  const RecordedProblem recorded = ThreeOfAModel();
  const auto after = [&](const WhatIf& question) { return Answer(recorded, question).value().after.cost; };
  EXPECT_EQ(after({.pin = {"bn1=native"}}), after({.pin = {"%0=native"}}));
  EXPECT_NE(after({.pin = {"bn1=native"}}), after({}));
  EXPECT_EQ(after({.forbid = {"library:conv2"}}), after({.pin = {"%2=native"}}));
  EXPECT_EQ(Answer(recorded, {.pin = {"relu1=native", "relu1=library"}}).error().message,
            "--pin relu1=library: relu1 (nn.relu) is pinned to native already");
  EXPECT_EQ(Answer(recorded, {.pin = {"conv9=native"}}).error().message, "--pin conv9=native: there is no node and no operator 'conv9'");
  EXPECT_EQ(Answer(recorded, {.forbid = {"library:conv1", "native:conv1"}}).error().message,
            "under these conditions: no valid candidate covers node conv1, bn1 (nn.conv2d)");
}

TEST(WhatIfTest, NamesAreRecordedAndFilesOfBeforeDoWithout) {
  const std::string text = ToJson(ThreeOfAModel());
  EXPECT_EQ(ParseRecorded(text).value().onnx_nodes, ThreeOfAModel().onnx_nodes);
  const std::string key = R"("onnx_nodes":[["conv1","bn1"],["relu1"],["conv2"]],)";
  const size_t at = text.find(key);
  ASSERT_NE(at, std::string::npos) << text;
  std::string before = text;
  const RecordedProblem old = ParseRecorded(before.erase(at, key.size())).value();
  EXPECT_EQ(Answer(old, {.pin = {"%0=native"}})->after.cost, Answer(Three(), {.pin = {"%0=native"}})->after.cost);
  std::string wrong = text;
  wrong.replace(at, key.size(), R"("onnx_nodes":[["conv1"]],)");
  EXPECT_EQ(ParseRecorded(wrong).error().message, "recorded problem: onnx_nodes are not as many as nodes");
}

// A model may name its nodes so.
TEST(WhatIfTest, NamesThatAreNoUtf8AreReplaced) {
  RecordedProblem recorded = ThreeOfAModel();
  recorded.onnx_nodes[0][0] = "conv\xff";
  EXPECT_EQ(ParseRecorded(ToJson(recorded)).value().onnx_nodes[0][0], "conv\xef\xbf\xbd");
}

TEST(WhatIfTest, ForbiddingABackendForbidsKernelsThatCallIt) {
  RecordedProblem recorded = Three();
  recorded.calls = {{3, 0, IndexSet({0})}};
  const auto forbidding = [](const RecordedProblem& in, const std::string& what) { return Answer(in, {.forbid = {what}}); };
  const std::string uncovered = "under these conditions: no valid candidate covers node %0 (nn.conv2d)";
  EXPECT_EQ(forbidding(recorded, "library").error().message, uncovered);
  EXPECT_EQ(forbidding(recorded, "library:nn.conv2d").error().message, uncovered);
  EXPECT_TRUE(forbidding(recorded, "library:nn.relu"));
  // A node that a library computes does not run on the backend that calls it.
  EXPECT_EQ(Answer(recorded, {.pin = {"%0=native"}}).error().message,
            "%0 (nn.conv2d) is pinned to native, which has no valid candidate there that keeps to the other pins");
  EXPECT_TRUE(Answer(recorded, {.pin = {"%1=native"}}));
  const RecordedProblem read = ParseRecorded(ToJson(recorded)).value();
  EXPECT_EQ(read.calls, recorded.calls);
  EXPECT_EQ(forbidding(read, "library").error().message, uncovered);
}

TEST(WhatIfTest, ConditionsChangeTheOptimum) {
  const WhatIfAnswer nothing = Answer(Three(), {}).value();
  EXPECT_DOUBLE_EQ(nothing.before.cost.ToMicroseconds(), 22);  // 11 + 1 + 10
  EXPECT_EQ(nothing.after.choices, nothing.before.choices);
  EXPECT_EQ(nothing.lower_bound, nothing.after.cost);
  EXPECT_DOUBLE_EQ(After({.forbid = {"library"}}), 33);          // 14 + 3 + 14 and two transitions
  EXPECT_DOUBLE_EQ(After({.forbid = {"library:nn.relu"}}), 25);  // 10 + 3 + 10 and two
  EXPECT_DOUBLE_EQ(After({.pin = {"%1=native"}}), 25);
  EXPECT_DOUBLE_EQ(After({.pin = {"nn.conv2d=native"}}), 33);
  EXPECT_DOUBLE_EQ(After({.penalty = {"library:library=50"}}), 25);  // 10 + 3 + 10 and two: none from library to library
  EXPECT_DOUBLE_EQ(After({.pin = {"%1=native"}, .penalty = {"native:library=0.5", "library:native=0"}}), 23.5);
}

TEST(WhatIfTest, TheChosenPlanIsPricedAsRecorded) {
  RecordedProblem recorded = Three();
  EXPECT_FALSE(Answer(recorded, {})->chosen_cost.has_value());
  recorded.chosen = {{3, 0}, {4, 0}, {5, 0}};
  EXPECT_DOUBLE_EQ(Answer(recorded, {})->chosen_cost->ToMicroseconds(), 33);
  recorded.variants = {{"direct"}, {"direct"}, {"direct"}, {"tiled"}, {"tiled"}, {"tiled"}};
  const RecordedProblem again = ParseRecorded(ToJson(recorded)).value();
  EXPECT_EQ(again.chosen, recorded.chosen);
  EXPECT_EQ(again.variants, recorded.variants);
  recorded.chosen = {{6, 0}};
  EXPECT_FALSE(ParseRecorded(ToJson(recorded)).has_value());
}

TEST(WhatIfTest, ErrorsNameTheOperator) {
  EXPECT_EQ(ErrorOf({.pin = {"%0=library", "nn.conv2d=native"}}), "--pin nn.conv2d=native: %0 (nn.conv2d) is pinned to library already");
  EXPECT_EQ(ErrorOf({.forbid = {"library"}, .pin = {"%2=library"}}), "%2 (nn.conv2d) is pinned to library, which is forbidden there");
  EXPECT_EQ(ErrorOf({.pin = {"%1=library", "%0=native"}}),
            "%1 (nn.relu) is pinned to library, which has no valid candidate there that keeps to the other pins");
  EXPECT_EQ(ErrorOf({.forbid = {"native", "library:nn.relu"}}), "under these conditions: no valid candidate covers node %1 (nn.relu)");
  EXPECT_EQ(ErrorOf({.forbid = {"dnnl"}}), "--forbid dnnl: there is no backend 'dnnl', expected one of library, native");
  EXPECT_EQ(ErrorOf({.forbid = {"native:tanh"}}),
            "--forbid native:tanh: there is no node and no operator 'tanh' (nodes are known by number only, such as %0)");
  EXPECT_EQ(ErrorOf({.pin = {"%9=native"}}),
            "--pin %9=native: there is no node and no operator '%9' (nodes are known by number only, such as %0)");
  EXPECT_EQ(ErrorOf({.pin = {"native"}}), "--pin native: expected node=backend");
  EXPECT_EQ(ErrorOf({.penalty = {"native=3"}}), "--penalty native=3: expected backend:backend=microseconds");
  EXPECT_EQ(ErrorOf({.penalty = {"native:library=fast"}}),
            "--penalty native:library=fast: 'fast' is no number of microseconds, expected one from 0 to 1e12");
}

TEST(WhatIfTest, UnmeasuredVariantsBoundTheAnswer) {
  RecordedProblem recorded = Three();
  recorded.problem.candidates[4].variants[0].cost = Cost::Unknown();
  recorded.bounds[4][0] = Cost::Microseconds(0.5);
  const WhatIfAnswer answer = Answer(recorded, {}).value();
  EXPECT_DOUBLE_EQ(answer.after.cost.ToMicroseconds(), 22);
  EXPECT_DOUBLE_EQ(answer.lower_bound.ToMicroseconds(), 22);  // 10 + 0.5 + 10 + 2 is more
  recorded.problem.candidates[2].variants[0].cost = Cost::Microseconds(13);
  recorded.bounds[2][0] = Cost::Microseconds(13);
  EXPECT_DOUBLE_EQ(Answer(recorded, {})->after.cost.ToMicroseconds(), 24);
  EXPECT_DOUBLE_EQ(Answer(recorded, {})->lower_bound.ToMicroseconds(), 22.5);
}

TEST(RecordedTest, TextBringsBackTheProblemWithEveryOptimum) {
  std::mt19937_64 random(61);
  for (size_t round = 0; round < Rounds(500); ++round) {
    const SearchProblem problem = RandomProblem(random, round % 2 == 0);
    std::vector<std::string> backends;
    for (size_t b = 0; b < problem.backend_count; ++b) backends.push_back("backend" + std::to_string(b));
    const RecordedProblem recorded = Record(problem, TruePrices(problem), backends, std::vector<std::string>(problem.node_count, "%"),
                                            std::vector<std::string>(problem.node_count, "op"));
    const std::string text = ToJson(recorded);
    const Result<RecordedProblem> again = ParseRecorded(text);
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_EQ(ToJson(*again), text);
    const Result<SearchResult> expected = SearchShortestPath(problem);
    const Result<SearchResult> found = SearchShortestPath(again->problem);
    ASSERT_EQ(found.has_value(), expected.has_value()) << "round " << round;
    if (!expected) continue;
    EXPECT_EQ(found->cost, expected->cost) << "round " << round;
    EXPECT_EQ(found->choices, expected->choices) << "round " << round;
  }
}

TEST(RecordedTest, DamagedTextIsAnErrorNeverACrash) {
  RecordedProblem recorded = Three();
  recorded.calls = {{3, 0, IndexSet({0})}};
  const std::string text = ToJson(recorded);
  EXPECT_FALSE(ParseRecorded("").has_value());
  EXPECT_FALSE(ParseRecorded("{}").has_value());
  for (const char* nodes : {"\"inside\":[0", "\"calls\":[[3,0,[0"}) {
    std::string large = text;
    large.insert(large.find(nodes) + std::string(nodes).size(), "000000000000000,7");
    large.replace(large.find(nodes) + std::string(nodes).size() - 1, 1, "4");
    EXPECT_FALSE(ParseRecorded(large)) << nodes;
  }
  std::mt19937_64 random(62);
  for (size_t round = 0; round < Rounds(3000); ++round) {
    std::string damaged = text;
    for (size_t change = 0; change <= random() % 3; ++change) damaged[random() % damaged.size()] = "0123456789,[]{}\"xn"[random() % 18];
    const Result<RecordedProblem> parsed = ParseRecorded(damaged);
    if (parsed) (void)Answer(*parsed, {});
  }
}

}  // namespace
}  // namespace collage
