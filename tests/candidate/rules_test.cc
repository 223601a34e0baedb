#include "collage/candidate/rules.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/dataflow/evaluate.h"

namespace collage {
namespace {

using namespace pattern;  // NOLINT(google-build-using-namespace)

class Rules : public ::testing::Test {
 protected:
  Rules()
      : graph_(ParseFunction(R"(fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
          %0 = nn.relu(%x);
          %1 = add(%0, meta[relay.Constant][0] /*Tensor[(2), float32]*/);
          %2 = split(%1, indices_or_sections=2);
          %3 = %2.0;
          %4 = %2.1;
          %5 = (%4, %3);
          %6 = concatenate(%5);
          %7 = tanh(%6);
          %8 = exp(%0);
          multiply(%7, %8)
        })",
                             &names_)) {
    for (const auto& [name, expr] : names_) name_of_[graph_.Find(expr)] = name;
  }
  std::set<std::set<std::string>> Find(const Rule& rule) const {
    std::set<std::set<std::string>> all;
    for (const SubGraph& sub_graph : rule->AllSubGraphs(graph_, nullptr)) {
      std::set<std::string> names;
      sub_graph.inside().ForEach([&](PostDfsIndex node) {
        const auto at = name_of_.find(node);
        names.insert(at != name_of_.end() ? at->second : graph_[node].expr->As<Constant>() ? "const" : "result");
      });
      EXPECT_TRUE(all.insert(names).second) << "found twice";
    }
    return all;
  }
  static CallPredicate AllBut(std::string op) {
    return [op = std::move(op)](const Expr& call) { return CalledOp(call)->name == op ? Verdict::Reject("refused") : Verdict::Accept(); };
  }

  std::unordered_map<std::string, Expr> names_;
  DataflowGraph graph_;
  std::unordered_map<PostDfsIndex, std::string> name_of_;
};

using Sets = std::set<std::set<std::string>>;

TEST_F(Rules, OpPredicatePullsConstantsWhenAskedTo) {
  const auto only_add = [](const Expr& call) { return CalledOp(call)->name == "add" ? Verdict::Accept() : Verdict::Reject("no"); };
  EXPECT_EQ(Find(OpPredicateRule("r", only_add)), (Sets{{"1"}}));
  EXPECT_EQ(Find(OpPredicateRule("r", only_add, true)), (Sets{{"1", "const"}}));
  std::vector<Refusal> refusals;
  OpPredicateRule("r", only_add)->ForEach(graph_, &refusals, [](const SubGraph&) {});
  EXPECT_EQ(refusals.size(), 6u);
  EXPECT_EQ(refusals[0].reason, "no");
}

TEST_F(Rules, HostTakesAllButCallsOfOperatorsThatFuse) {
  EXPECT_EQ(Find(HostRule()), (Sets{{"x"}, {"const"}, {"3"}, {"4"}, {"5"}, {"result"}}));
  EXPECT_EQ(Find(NoCallRule()), Find(HostRule()));
  EXPECT_EQ(Find(ViewRule()), (Sets{}));
  const DataflowGraph shapes(ParseFunction("fn (%x: Tensor[(2), float32]) { shape_of(%x) }"));
  EXPECT_EQ(HostRule()->AllSubGraphs(shapes, nullptr).size(), 3u);
  EXPECT_EQ(NoCallRule()->AllSubGraphs(shapes, nullptr).size(), 2u);
}

TEST_F(Rules, MaximalTakesTuplesWhoseNeighboursItHas) {
  EXPECT_EQ(Find(MaximalRule(OpPredicateRule("r", AllBut("")))), (Sets{{"0", "1", "2", "3", "4", "5", "6", "7", "8", "result"}}));
  // Without exp, relu still feeds it, and the product cannot be reached from relu around it.
  const Sets without = Find(MaximalRule(OpPredicateRule("r", AllBut("exp"))));
  EXPECT_EQ(without, (Sets{{"0", "1", "2", "3", "4", "5", "6", "7"}, {"result"}}));
  EXPECT_EQ(Find(MaximalRule(OpPredicateRule("r", AllBut("concatenate")))), (Sets{{"0", "1", "2", "8"}, {"7", "result"}}));
}

TEST_F(Rules, MaxCoalesceJoinsOnlyWhatTouches) {
  EXPECT_EQ(Find(MaxCoalesceRule(OpPredicateRule("r", AllBut("")))), (Sets{{"0", "1", "2", "8"}, {"6", "7", "result"}}));
}

TEST_F(Rules, OnlyValidAndReleaseConstants) {
  const Rule add = DFPatternRule("r", CallOf("add", {CallOf("nn.relu"), IsConstant()}));
  EXPECT_EQ(Find(add), (Sets{{"0", "1", "const"}}));
  EXPECT_EQ(Find(OnlyValidRule({}, add)), Sets{});  // relu also feeds exp: a tap
  EXPECT_EQ(Find(OnlyValidRule({.allow_taps = true}, ReleaseConstantsRule(add))), (Sets{{"0", "1"}}));
}

TEST_F(Rules, EqualInsidesOfDifferentNestingAreDifferent) {
  const Rule relu = DFPatternRule("r", CallOf("nn.relu"));
  const Rule both = UnionRule({CompositeRule("a", relu), CompositeRule("b", relu), CompositeRule("a", relu)});
  EXPECT_EQ(both->AllSubGraphs(graph_, nullptr).size(), 2u);
  const auto labelled = PrimitiveRule("library", CompositeRule("a", relu))->AllSubGraphs(graph_, nullptr);
  ASSERT_EQ(labelled.size(), 1u);
  EXPECT_EQ(*labelled[0].nested()[0].attributes.Find("Compiler")->AsString(), "library");
  EXPECT_EQ(*labelled[0].nested()[0].sub_graph.nested()[0].attributes.Find("Composite")->AsString(), "a");
}

}  // namespace
}  // namespace collage
