#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "collage/candidate/rules.h"
#include "collage/ir/print.h"
#include "collage/pattern/fusion.h"
#include "tests/candidate/oracle.h"
#include "tests/candidate/small_graphs.h"

namespace collage {
namespace {

using Mask = Oracle::Mask;

bool Begins(const Expr& call) { return CalledOp(call)->kind == OpKind::kOutElementwiseFusable || CalledOp(call)->name.back() == '2'; }

/// Depends on all that is inside, as that of a library which takes one reduction, and no more than one operator of a name in a row.
bool Joins(const std::vector<Expr>& inside, const Expr& next) {
  const auto reductions =
      std::count_if(inside.begin(), inside.end(), [](const Expr& call) { return CalledOp(call)->kind == OpKind::kCommReduce; });
  if (CalledOp(next)->kind == OpKind::kCommReduce) return reductions == 0;
  return CalledOp(next)->kind != OpKind::kOpaque && CalledOp(next) != CalledOp(inside.back());
}

/// "A match begins with one call; step by step a call that takes something of it joins, and every set on the way that has one exit, is
/// convex and has no taps is a match, its constants inside", of every subset of the calls.
class EverySubset {
 public:
  EverySubset(const DataflowGraph& graph, const Oracle& oracle, const FusionRule& rule) : graph_(graph), oracle_(oracle), rule_(rule) {}

  [[nodiscard]] Oracle::Sets Matches() {
    Oracle::Sets sets;
    const Mask calls = oracle_.Calls();
    for (Mask inside = calls; inside != 0; inside = (inside - 1) & calls) {
      if (!IsReached(inside) || std::popcount(oracle_.Exits(inside)) != 1 || oracle_.HasTaps(inside) || !oracle_.IsConvex(inside)) continue;
      std::set<size_t> members;
      for (const size_t node : Oracle::Members(inside)) {
        members.insert(node);
        for (const Expr& arg : graph_[node].expr->As<Call>()->args) {
          if (arg->As<Constant>()) members.insert(graph_.Find(arg));
        }
      }
      sets.insert({members.begin(), members.end()});
    }
    return sets;
  }

 private:
  [[nodiscard]] bool IsReached(Mask inside) {
    const auto [at, is_new] = reached_.try_emplace(inside, false);
    if (!is_new) return at->second;
    bool reached = false;
    const std::vector<size_t> members = Oracle::Members(inside);
    if (members.size() == 1) {
      reached = rule_.begins(graph_[members[0]].expr);
    } else if (members.size() <= rule_.max_operators) {
      for (const size_t last : members) reached = reached || IsReachedBy(inside & ~(Mask{1} << last), last);
    }
    return reached_[inside] = reached;
  }

  [[nodiscard]] bool IsReachedBy(Mask before, size_t next) {
    if (!oracle_.Feeds(before, Mask{1} << next) || !IsReached(before)) return false;
    if (static_cast<size_t>(std::popcount(oracle_.Exits(before))) > rule_.max_exits) return false;
    std::vector<Expr> inside;
    for (const size_t node : Oracle::Members(before)) inside.push_back(graph_[node].expr);
    return rule_.joins(inside, graph_[next].expr);
  }

  const DataflowGraph& graph_;
  const Oracle& oracle_;
  const FusionRule& rule_;
  std::map<Mask, bool> reached_;
};

Oracle::Sets Find(const DataflowGraph& graph, const PatternRule& rule) {
  Oracle::Sets sets;
  ForEachMatch(graph, rule, [&](PatternMatch match) {
    EXPECT_TRUE(sets.insert(match.inside.ToVector()).second) << "found twice: " << match.inside.ToString();
    for (const auto& [name, outside] : match.match.captures) EXPECT_FALSE(match.inside.Contains(graph.IndexOf(outside))) << name;
  });
  return sets;
}

void Compare(const Expr& function, size_t& found) {
  const DataflowGraph graph(function);
  const Oracle oracle(graph);
  for (const size_t max_operators : {2, 4, 16}) {
    for (const size_t max_exits : {1, 2}) {
      const FusionRule rule{Begins, Joins, max_operators, max_exits};
      const Oracle::Sets expected = EverySubset(graph, oracle, rule).Matches();
      ASSERT_EQ(Find(graph, PatternRule::Growing("library.op", rule)), expected)
          << max_operators << " operators, " << max_exits << " exits";
      found += expected.size();
    }
  }
}

TEST(FusionRuleTest, GrowsEverySubsetThatTheRuleReaches) {
  size_t found = 0;
  for (size_t operators = 1; operators <= 5; ++operators) {
    ForEveryConnectedDag(operators, 7, [&](const Expr& function) {
      if (!testing::Test::HasFailure()) Compare(function, found);
    });
  }
  for (uint64_t seed = 0; seed < 60 && !testing::Test::HasFailure(); ++seed) Compare(RandomDag(10, seed), found);
  EXPECT_GT(found, 5'000u);
}

/// Calls outside of a match that take something of it and that the rule lets join.
std::vector<Expr> CouldJoin(const DataflowGraph& graph, const IndexSet& inside, const std::vector<Expr>& calls) {
  std::vector<Expr> joining;
  for (PostDfsIndex node = 0; node < graph.size(); ++node) {
    const auto& inputs = graph[node].inputs;
    const auto is_call_inside = [&](PostDfsIndex input) { return inside.Contains(input) && graph[input].op; };
    if (!graph[node].op || inside.Contains(node) || std::none_of(inputs.begin(), inputs.end(), is_call_inside)) continue;
    if (Joins(calls, graph[node].expr)) joining.push_back(graph[node].expr);
  }
  return joining;
}

TEST(FusionRuleTest, AMatchEndsWhereTheRuleLetsIt) {
  const auto ends = [](const std::vector<Expr>& inside, const std::vector<Expr>& could_join) {
    return inside.size() % 2 == 0 && could_join.size() < 2;
  };
  const PatternRule any = PatternRule::Growing("library.op", FusionRule{Begins, Joins});
  const PatternRule some = PatternRule::Growing("library.op", FusionRule{Begins, Joins, 16, 2, ends});
  size_t ended = 0;
  size_t went_on = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const DataflowGraph graph(RandomDag(10, seed));
    Oracle::Sets expected;
    ForEachMatch(graph, any, [&](const PatternMatch& match) {
      std::vector<Expr> calls;
      match.inside.ForEach([&](PostDfsIndex node) {
        if (graph[node].op) calls.push_back(graph[node].expr);
      });
      const bool is_end = ends(calls, CouldJoin(graph, match.inside, calls));
      (is_end ? ended : went_on) += 1;
      if (is_end) expected.insert(match.inside.ToVector());
    });
    EXPECT_EQ(Find(graph, some), expected);
  }
  EXPECT_GT(ended, 20u);
  EXPECT_GT(went_on, 50u);
}

/// What may stand in front of a match, added call by call, with its projections, as long as no result goes anywhere else.
std::set<size_t> WithFront(const DataflowGraph& graph, std::set<size_t> inside, const std::function<bool(const Expr&)>& stands_in_front) {
  for (bool grows = true; grows;) {
    grows = false;
    for (PostDfsIndex node = 0; node < graph.size(); ++node) {
      if (!graph[node].op || inside.contains(node) || !stands_in_front(graph[node].expr)) continue;
      std::set<size_t> with = {node};
      for (const PostDfsIndex user : graph[node].outputs) {
        if (graph[user].expr->As<TupleGetItem>()) with.insert(user);
      }
      const auto stays_inside = [&](PostDfsIndex member) {
        const auto& users = graph[member].outputs;
        const auto is_inside = [&](PostDfsIndex user) { return inside.contains(user) || with.contains(user); };
        return !graph[member].external && !users.empty() && std::all_of(users.begin(), users.end(), is_inside);
      };
      if (!std::all_of(with.begin(), with.end(), stays_inside)) continue;
      inside.insert(with.begin(), with.end());
      for (const PostDfsIndex input : graph[node].inputs) {
        if (graph[input].expr->As<Constant>()) inside.insert(input);
      }
      grows = true;
    }
  }
  return inside;
}

TEST(FusionRuleTest, WhatStandsInFrontIsTakenWhole) {
  const auto in_front = [](const Expr& call) { return CalledOp(call)->kind != OpKind::kCommReduce; };
  const PatternRule bare = PatternRule::Growing("library.op", FusionRule{Begins, Joins});
  const PatternRule rule = PatternRule::Growing("library.op", FusionRule{Begins, Joins, 16, 2, {}, in_front});
  size_t added = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const Expr function = RandomDag(10, seed);
    const DataflowGraph graph(function);
    Oracle::Sets expected = Find(graph, bare);
    for (const auto& match : Oracle::Sets(expected)) {
      const std::set<size_t> whole = WithFront(graph, {match.begin(), match.end()}, in_front);
      added += expected.insert({whole.begin(), whole.end()}).second;
    }
    EXPECT_EQ(Find(graph, rule), expected) << Print(function);
  }
  EXPECT_GT(added, 50u);
}

TEST(FusionRuleTest, TheRuleLabelsAndChecksWhatHasGrown) {
  const DataflowGraph graph(RandomDag(12, 3));
  const FusionRule grow{Begins, Joins};
  size_t asked = 0;
  const PatternRule rule =
      PatternRule::Growing("library.op", grow, [&](const Match&) { return ++asked % 2 == 0 ? Verdict::Accept() : Verdict::Reject("odd"); });
  std::vector<Refusal> refusals;
  const std::vector<SubGraph> found = LabelledMatchesRule(rule)->AllSubGraphs(graph, &refusals);
  const size_t all = Find(graph, rule).size();
  ASSERT_GT(all, 4u);
  EXPECT_EQ(found.size(), all / 2);
  ASSERT_EQ(refusals.size(), all - all / 2);
  EXPECT_EQ(refusals[0].reason, "odd");
  for (const SubGraph& sub_graph : found) {
    ASSERT_EQ(sub_graph.nested().size(), 1u);
    EXPECT_EQ(*sub_graph.nested()[0].attributes.Find("Composite")->AsString(), LabelOf(rule, graph, sub_graph.inside()));
  }
}

}  // namespace
}  // namespace collage
