#include <gtest/gtest.h>

#include <string>

#include "collage/candidate/rules.h"
#include "tests/candidate/oracle.h"
#include "tests/candidate/small_graphs.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

using namespace pattern;  // NOLINT(google-build-using-namespace)
using Mask = Oracle::Mask;
using Sets = Oracle::Sets;

Sets Find(const DataflowGraph& graph, const Rule& rule) {
  Sets sets;
  for (const SubGraph& sub_graph : rule->AllSubGraphs(graph, nullptr)) {
    EXPECT_TRUE(sets.insert(sub_graph.inside().ToVector()).second) << "found twice: " << sub_graph.inside().ToString();
  }
  return sets;
}

Sets Singles(Mask nodes) {
  Sets sets;
  for (const size_t node : Oracle::Members(nodes)) sets.insert({node});
  return sets;
}

std::vector<Mask> SingleMasks(Mask nodes) {
  std::vector<Mask> masks;
  for (const size_t node : Oracle::Members(nodes)) masks.push_back(Mask{1} << node);
  return masks;
}

/// Every subset of the calls and constants that the test accepts.
Sets AllSubsets(Mask of, const std::function<bool(const std::vector<size_t>&)>& accept, size_t most) {
  Sets sets;
  for (Mask inside = of; inside != 0; inside = (inside - 1) & of) {
    if (static_cast<size_t>(__builtin_popcountll(inside)) > most) continue;
    std::vector<size_t> members = Oracle::Members(inside);
    if (accept(members)) sets.insert(std::move(members));
  }
  return sets;
}

class EveryDag : public testing::TestWithParam<size_t> {
 protected:
  /// Every connected DAG of the parameter's operators, and beyond six a few seeded ones. Of the many with six fewer under a sanitizer.
  static void ForAll(uint64_t seed, const std::function<void(const DataflowGraph&, const Oracle&)>& check) {
    size_t visited = 0;
    const auto visit = [&](const Expr& function) {
      ++visited;
      if (testing::Test::HasFailure() || (GetParam() == 6 && visited % kOneOfCases != 0)) return;
      const DataflowGraph graph(function);
      check(graph, Oracle(graph));
    };
    if (GetParam() <= 6) {
      ForEveryConnectedDag(GetParam(), seed, visit);
      const std::vector<size_t> all = {1, 1, 4, 38, 728, 26704};  // by number of operators
      EXPECT_EQ(visited, all[GetParam() - 1]);
    } else {
      for (int round = 0; round < 160 >> (GetParam() - 6); ++round)
        visit(RandomDag(GetParam(), seed * 1000 + static_cast<uint64_t>(round)));
    }
  }
};

bool CallsOp(const Expr& expr, const std::string& name) { return CalledOp(expr) && CalledOp(expr)->name == name; }
Expr ArgumentOf(const Expr& call, size_t i) { return call->As<Call>()->args[i]; }

/// "OpPredicate (every call whose predicate accepts; constant arguments may be pulled in), OpCallByKind (every call of a fusable
/// kind), Host (every expression that may stay behind for the executor)"
TEST_P(EveryDag, CallRules) {
  const auto accepts = [](const Expr& call) { return CalledOp(call)->name.back() != '1'; };
  const CallPredicate predicate = [&](const Expr& call) { return accepts(call) ? Verdict::Accept() : Verdict::Reject("one argument"); };
  ForAll(1, [&](const DataflowGraph& graph, const Oracle& oracle) {
    const Mask accepted = oracle.Where([&](const Expr& expr) { return CalledOp(expr) && accepts(expr); });
    EXPECT_EQ(Find(graph, OpPredicateRule("r", predicate)), Singles(accepted));
    Sets pulled;
    for (const size_t node : Oracle::Members(accepted)) {
      std::set<size_t> inside = {node};
      for (const Expr& arg : graph[node].expr->As<Call>()->args) {
        if (arg->As<Constant>()) inside.insert(graph.Find(arg));
      }
      pulled.insert({inside.begin(), inside.end()});
    }
    EXPECT_EQ(Find(graph, OpPredicateRule("r", predicate, true)), pulled);
    const Mask fusable = oracle.Where([](const Expr& expr) { return CalledOp(expr) && CalledOp(expr)->kind != OpKind::kOpaque; });
    EXPECT_EQ(Find(graph, OpCallByKindRule()), Singles(fusable));
    EXPECT_EQ(Find(graph, HostRule()), Singles(oracle.Where([](const Expr& expr) {
                const OpDef* op = CalledOp(expr);
                return !op || op->kind == OpKind::kOpaque;
              })));
  });
}

/// "DFPattern (every match of pattern + predicate, overlaps welcome)", "Union"
TEST_P(EveryDag, Patterns) {
  const Pattern pair = CallOf("elementwise1", {CallOf("broadcast2", {Wildcard(), Wildcard()})});
  const Pattern diamond = CallOf("broadcast2", {Wildcard(), Or({CallOf("elementwise1", {Wildcard()}), IsConstant()})});
  ForAll(2, [&](const DataflowGraph& graph, const Oracle& oracle) {
    const Mask nodes = oracle.Where([](const Expr& expr) { return CalledOp(expr) || expr->As<Constant>(); });
    const auto is_pair = [&](const std::vector<size_t>& inside) {
      if (inside.size() != 2 || !CallsOp(graph[inside[1]].expr, "elementwise1")) return false;
      return CallsOp(graph[inside[0]].expr, "broadcast2") && ArgumentOf(graph[inside[1]].expr, 0) == graph[inside[0]].expr;
    };
    const auto is_diamond = [&](const std::vector<size_t>& inside) {
      if (inside.size() != 2 || !CallsOp(graph[inside[1]].expr, "broadcast2")) return false;
      const Expr& second = ArgumentOf(graph[inside[1]].expr, 1);
      return second == graph[inside[0]].expr && (second->As<Constant>() || CallsOp(second, "elementwise1"));
    };
    EXPECT_EQ(Find(graph, DFPatternRule("pair", pair)), AllSubsets(nodes, is_pair, 2));
    EXPECT_EQ(Find(graph, DFPatternRule("diamond", diamond)), AllSubsets(nodes, is_diamond, 2));
    const Rule both = UnionRule({DFPatternRule("pair", pair), DFPatternRule("diamond", diamond)});
    const auto either = [&](const std::vector<size_t>& inside) { return is_pair(inside) || is_diamond(inside); };
    EXPECT_EQ(Find(graph, both), AllSubsets(nodes, either, 2));
    const Rule refused = DFPatternRule("pair", pair, [](const Match& match) {
      return match.root->As<Call>()->args[0]->As<Call>()->args[0]->As<Var>() ? Verdict::Reject("reads the input") : Verdict::Accept();
    });
    EXPECT_EQ(
        Find(graph, refused),
        AllSubsets(
            nodes, [&](const std::vector<size_t>& inside) { return is_pair(inside) && !ArgumentOf(graph[inside[0]].expr, 0)->As<Var>(); },
            2));
  });
}

/// "a graph-style backend joins anything to anything", limits of the enumeration, "OnlyValid(SubGraphConfig)", "Composite (wrap,
/// label), Primitive (wrap; with Compiler for external targets)"
TEST_P(EveryDag, AnythingJoinedAndValid) {
  ForAll(3, [&](const DataflowGraph& graph, const Oracle& oracle) {
    const Rule calls = OpPredicateRule("r", {});
    const std::vector<Mask> all = oracle.Closure(SingleMasks(oracle.Calls()), {Combiner::Any()}, {});
    const Rule any = CombineRule({Combiner::Any()}, {}, calls);
    EXPECT_EQ(Find(graph, any), Oracle::ToSets(all));
    for (const CombineLimits& limits : {CombineLimits{.max_exits = 1}, CombineLimits{.max_operators = 3}}) {
      EXPECT_EQ(Find(graph, CombineRule({Combiner::Any()}, limits, calls)),
                Oracle::ToSets(oracle.Closure(SingleMasks(oracle.Calls()), {Combiner::Any()}, limits)));
    }
    for (const SubGraphConfig& config :
         {SubGraphConfig{}, SubGraphConfig{.max_exits = 1}, SubGraphConfig{.max_exits = 2, .allow_taps = true},
          SubGraphConfig{.max_depth = 2, .allow_taps = true}}) {
      std::vector<Mask> valid = all;
      std::erase_if(valid, [&](Mask inside) { return !oracle.IsValid(inside, config); });
      const Rule wrapped = PrimitiveRule("library", CompositeRule("library.op", OnlyValidRule(config, any)));
      EXPECT_EQ(Find(graph, wrapped), Oracle::ToSets(valid));
      if (graph.size() % 3 != 0) continue;  // the wrapping is the same everywhere
      for (const SubGraph& sub_graph : wrapped->AllSubGraphs(graph, nullptr)) {
        ASSERT_EQ(sub_graph.nested().size(), 1u);
        const NestedSubGraph& outer = sub_graph.nested().front();
        EXPECT_EQ(outer.sub_graph.inside(), sub_graph.inside());
        EXPECT_EQ(*outer.attributes.Find("Compiler"), AttributeValue("library"));
        ASSERT_EQ(outer.sub_graph.nested().size(), 1u);
        EXPECT_EQ(*outer.sub_graph.nested().front().attributes.Find("Composite"), AttributeValue("library.op"));
        EXPECT_TRUE(sub_graph.IsValid(graph, config));
      }
    }
  });
}

/// "by-kind(up <= u, down <= d) over touching pairs; tuple-argument (a consumer, its tuple argument, and one producer per field);
/// tuple-projection; constant (pull constant inputs in)", each alone and together. "The closure must be complete."
TEST_P(EveryDag, Combiners) {
  const std::vector<std::vector<Combiner>> families = {
      {Combiner::ByKind(OpKind::kOutElementwiseFusable, OpKind::kBroadcast)},
      {Combiner::ByKind(OpKind::kBroadcast, OpKind::kCommReduce)},
      {Combiner::ByKind(OpKind::kInjective, OpKind::kInjective)},
      {Combiner::TupleArgument()},
      {Combiner::TupleProjection()},
      {Combiner::Constant()},
      {Combiner::TupleArgument(), Combiner::ByKind(OpKind::kInjective, OpKind::kInjective)},
      NativeCombiners(),
      {Combiner::Constant(), Combiner::ByKind(OpKind::kElementwise, OpKind::kElementwise)},
  };
  ForAll(4, [&](const DataflowGraph& graph, const Oracle& oracle) {
    const Mask fusable = oracle.Where([](const Expr& expr) { return CalledOp(expr) && CalledOp(expr)->kind != OpKind::kOpaque; });
    for (size_t i = 0; i < families.size(); ++i) {
      EXPECT_EQ(Find(graph, CombineRule(families[i], {}, OpCallByKindRule())),
                Oracle::ToSets(oracle.Closure(SingleMasks(fusable), families[i], {})))
          << "combiners " << i;
    }
  });
}

/// "merge (largest regions per target without creating a cycle: a path that leaves a region may not re-enter it)": disjoint, all that
/// is supported, acyclic as a whole, and no two that touch could still be one.
TEST_P(EveryDag, MaximalRegions) {
  const auto accepts = [](const Expr& call) {
    return CalledOp(call)->kind != OpKind::kCommReduce && CalledOp(call)->kind != OpKind::kOpaque;
  };
  const Rule calls = OpPredicateRule("r", [&](const Expr& call) { return accepts(call) ? Verdict::Accept() : Verdict::Reject("no"); });
  ForAll(5, [&](const DataflowGraph& graph, const Oracle& oracle) {
    const Mask accepted = oracle.Where([&](const Expr& expr) { return CalledOp(expr) && accepts(expr); });
    for (const bool take_tuples : {false, true}) {
      std::vector<Mask> regions;
      Mask all = 0;
      for (const std::vector<size_t>& members : Find(graph, take_tuples ? MaximalRule(calls) : MaxCoalesceRule(calls))) {
        Mask region = 0;
        for (const size_t node : members) region |= Mask{1} << node;
        EXPECT_EQ(all & region, 0u) << "regions overlap";
        all |= region;
        regions.push_back(region);
      }
      const Mask calls_inside = all & oracle.Calls();
      EXPECT_EQ(calls_inside, accepted);
      EXPECT_EQ(take_tuples ? calls_inside : all, accepted);
      EXPECT_TRUE(oracle.IsAcyclicWhenContracted(regions));
      for (size_t a = 0; a < regions.size(); ++a) {
        for (size_t b = 0; b < regions.size(); ++b) {
          if (a == b || !oracle.Feeds(regions[a], regions[b])) continue;
          std::vector<Mask> joined = regions;
          joined[a] |= joined[b];
          joined.erase(joined.begin() + static_cast<std::ptrdiff_t>(b));
          EXPECT_FALSE(oracle.IsAcyclicWhenContracted(joined)) << "two regions could be one";
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(OfSoManyOperators, EveryDag, testing::Values(1, 2, 3, 4, 5, 6, 8, 10, 12));

}  // namespace
}  // namespace collage
