#include "collage/dataflow/evaluation_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/dataflow/evaluate.h"

namespace collage {
namespace {

/// The names of what is evaluated, in that order.
std::vector<std::string> Order(const std::string& text, const std::map<std::string, std::vector<std::string>>& also_before = {}) {
  std::unordered_map<std::string, Expr> names;
  const DataflowGraph graph(ParseFunction(text, &names));
  std::unordered_map<PostDfsIndex, std::vector<PostDfsIndex>> also;
  for (const auto& [name, others] : also_before) {
    for (const std::string& other : others) also[graph.IndexOf(names.at(name))].push_back(graph.IndexOf(names.at(other)));
  }
  std::vector<std::string> ordered;
  for (const PostDfsIndex index : EvaluationOrder(graph, graph.IndexOf(graph.function()->As<Function>()->body), also)) {
    for (const auto& [name, expr] : names) {
      if (expr == graph[index].expr && expr->As<Call>()) ordered.push_back(name);
    }
  }
  return ordered;
}

constexpr const char* kShortBeforeLong = R"(fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
  %0 = tanh(%x);
  %1 = nn.relu(%x);
  %2 = exp(%1);
  %3 = add(%0, %2);
  %4 = sqrt(%x);
  add(%3, %4)
})";

TEST(EvaluationOrder, WhatIsShortStandsRightBeforeItsUse) {
  EXPECT_THAT(Order(kShortBeforeLong), testing::ElementsAre("1", "2", "0", "3", "4"));
}

TEST(EvaluationOrder, OfEquallyDeepOnesTheFirstArgumentGoesFirst) {
  EXPECT_THAT(Order(R"(fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] { %0 = tanh(%x); %1 = exp(%x); add(%1, %0) })"),
              testing::ElementsAre("1", "0"));
}

TEST(EvaluationOrder, WhereEachLayerAddsToASumItDoesWhenItIsDone) {
  // What the last layer adds is deeper than the sum so far.
  std::string text = "fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] { %0 = tanh(%x); %1 = nn.relu(%0); ";
  std::vector<std::string> names = {"0", "1"};
  std::string chain = "0";
  std::string sum = "1";
  const auto add = [&](const std::string& call) {
    names.push_back(std::to_string(names.size()));
    text += "%" + names.back() + " = " + call + "; ";
    return names.back();
  };
  for (size_t layer = 1; layer < 6; ++layer) {
    chain = add("tanh(%" + add("exp(%" + chain + ")") + ")");
    sum = add("add(%" + sum + ", %" + add("nn.relu(%" + chain + ")") + ")");
  }
  EXPECT_THAT(Order(text + "%" + sum + " }"), testing::ElementsAreArray(names));
}

TEST(EvaluationOrder, WhatIsToComeBeforeANodeDoes) {
  EXPECT_THAT(Order(kShortBeforeLong, {{"1", {"0"}}, {"0", {"4"}}}), testing::ElementsAre("4", "0", "1", "2", "3"));
}

TEST(EvaluationOrder, IsAnOrderOfEvaluationOfRandomPrograms) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const DataflowGraph graph(RandomFunction(seed, 30));
    const std::vector<PostDfsIndex> order = EvaluationOrder(graph, graph.size() - 1);
    std::vector<size_t> place(graph.size(), graph.size());
    for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    ASSERT_EQ(order.size(), graph.size());
    ASSERT_TRUE(std::none_of(place.begin(), place.end(), [&](size_t at) { return at == graph.size(); }));
    for (PostDfsIndex node = 0; node < graph.size(); ++node) {
      for (const PostDfsIndex input : graph[node].inputs) ASSERT_LT(place[input], place[node]) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace collage
