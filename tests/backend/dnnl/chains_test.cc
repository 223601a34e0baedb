#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "collage/dataflow/sub_graph.h"
#include "collage/pattern/fusion.h"
#include "tests/backend/kernel_harness.h"

namespace collage {
namespace {

using namespace testing_backend;  // NOLINT(google-build-using-namespace)
using pattern::CallOf;
using pattern::IsConstant;
using pattern::Or;
using pattern::Wildcard;

const Backend& Dnnl() {
  static const Backend& backend = BackendNamed("dnnl");
  return backend;
}

std::set<std::vector<size_t>> Accepted(const DataflowGraph& graph, const std::vector<PatternRule>& rules) {
  std::set<std::vector<size_t>> sets;
  for (const PatternRule& rule : rules) {
    ForEachMatch(graph, rule, [&](PatternMatch match) {
      if (rule.check(match.match).accepted) sets.insert(match.inside.ToVector());
    });
  }
  return sets;
}

std::vector<PatternRule> RulesThatGrow() {
  std::vector<PatternRule> rules = Dnnl().Rules().patterns;
  std::erase_if(rules, [](const PatternRule& rule) { return !rule.fusion; });
  return rules;
}

/// What a list says of the chains behind a convolution: bias, activation, addition, activation, each of them or not.
std::vector<PatternRule> Enumerated(const std::function<Verdict(const Match&)>& check) {
  const Pattern convolution = CallOf("nn.conv2d", {Wildcard().As("outside0"), IsConstant()});
  std::vector<Pattern> all = {convolution, Or({CallOf("nn.bias_add", {convolution, IsConstant()})})};
  const auto extend = [&](size_t begin, size_t end, bool with_sum) {
    for (size_t i = begin; i < end; ++i) {
      const Pattern before = all[i];
      for (const char* op : {"nn.relu", "sigmoid", "tanh", "clip"}) all.push_back(CallOf(op, {before}));
      all.push_back(CallOf("multiply", {before, CallOf("sigmoid", {before})}));
      if (with_sum) all.push_back(CallOf("add", {before, Wildcard().As("outside8")}));
    }
  };
  extend(0, 2, true);
  extend(2, all.size(), true);
  std::vector<PatternRule> rules;
  for (Pattern& one : all) rules.push_back({"listed", std::move(one), check});
  return rules;
}

/// A convolution and a random chain behind it; values on the way are sometimes used elsewhere too.
Expr RandomChain(uint64_t seed) {
  std::mt19937_64 random(seed);
  const Expr x = Input({1, 8, 6, 6});
  const Expr other = Input({1, 8, 6, 6});
  Expr value = CallOp("nn.conv2d", {x, RandomConstant({8, 8, 3, 3}, seed)}, {{"padding", std::vector<int64_t>{1, 1, 1, 1}}});
  std::vector<Expr> results;
  for (int step = 0; step < 5; ++step) {
    if (random() % 8 == 0) results.push_back(value);
    switch (random() % 7) {
      case 0:
        value = CallOp("nn.bias_add", {value, RandomConstant({8}, random())});
        break;
      case 1:
        value = CallOp("nn.relu", {value});
        break;
      case 2:
        value = CallOp("sigmoid", {value});
        break;
      case 3:
        value = CallOp("multiply", {value, CallOp("sigmoid", {value})});
        break;
      case 4:
        value = CallOp("add", {value, other});
        break;
      case 5:
        value = CallOp("add", {other, value});
        break;
      default:
        value = CallOp("clip", {value}, {{"a_min", 0.0}, {"a_max", 6.0}});
        break;
    }
  }
  results.push_back(value);
  return FunctionOf({x, other}, MakeTuple(results));
}

TEST(DnnlChainsTest, GrowingFindsWhatAListWouldAndMore) {
  const std::vector<PatternRule> grown = RulesThatGrow();
  ASSERT_EQ(grown.size(), 5u);  // four of numbers, one of integers
  size_t listed_count = 0;
  size_t grown_count = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const DataflowGraph graph(RandomChain(seed));
    const auto found = Accepted(graph, grown);
    for (const std::vector<size_t>& listed : Accepted(graph, Enumerated(grown.front().check))) {
      const IndexSet inside(listed);
      if (!SubGraph(graph, inside).IsValid(graph, {.max_exits = 1})) continue;
      EXPECT_TRUE(found.contains(listed)) << "seed " << seed << ": " << inside.ToString();
      ++listed_count;
    }
    grown_count += found.size();
  }
  EXPECT_GT(listed_count, 100u);
  EXPECT_GT(grown_count, listed_count);
}

TEST(DnnlChainsTest, AChainThatNoListWouldNameRunsAsOneKernel) {
  const Expr x = Input({1, 8, 6, 6});
  const Expr other = Input({1, 8, 6, 6});
  Expr value = CallOp("nn.conv2d", {x, RandomConstant({8, 8, 3, 3}, 1)}, {{"padding", std::vector<int64_t>{1, 1, 1, 1}}});
  value = CallOp("nn.bias_add", {value, RandomConstant({8}, 2)});
  for (int round = 0; round < 2; ++round) {
    value = CallOp("add", {CallOp("nn.relu", {value}), other});
    value = CallOp("multiply", {CallOp("tanh", {value}), Scalar(0.5)});
  }
  const Expr function = FunctionOf({x, other}, value);
  const DataflowGraph graph(function);
  const auto found = Accepted(graph, RulesThatGrow());
  EXPECT_TRUE(std::any_of(found.begin(), found.end(), [](const std::vector<size_t>& inside) { return inside.size() == 14; }))
      << "ten operators, weights, bias, and two equal scalars that are one constant each";
  EXPECT_FALSE(CheckAllVariants(Dnnl(), function).empty());
  std::vector<std::string> labels;
  for (const PatternRule& rule : RulesThatGrow()) {
    ForEachMatch(graph, rule, [&](PatternMatch match) { labels.push_back(LabelOf(rule, graph, match.inside)); });
  }
  EXPECT_THAT(labels, testing::Contains("dnnl.conv2d_bias_relu_add_tanh_multiply_relu_add_tanh_multiply"));
}

}  // namespace
}  // namespace collage
