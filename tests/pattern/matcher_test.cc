#include "collage/pattern/matcher.h"

#include <gmock/gmock.h>

#include <set>

#include "collage/op/table.h"
#include "tests/dataflow/evaluate.h"

namespace collage {
namespace {

using namespace pattern;  // NOLINT(google-build-using-namespace): the tests are about its words

std::vector<PatternMatch> AllMatches(const DataflowGraph& graph, const Pattern& pattern) {
  std::vector<PatternMatch> all;
  ForEachMatch(graph, pattern, [&](PatternMatch match) { all.push_back(std::move(match)); });
  return all;
}

class Program {
 public:
  explicit Program(const std::string& text) : graph_(ParseFunction(text, &names_)) {
    for (const auto& [name, expr] : names_) name_of_[graph_.Find(expr)] = name;
  }
  /// The inside sets of all matches, as names ("const" for constants).
  std::multiset<std::set<std::string>> Insides(const Pattern& pattern) const {
    std::multiset<std::set<std::string>> all;
    for (const PatternMatch& match : AllMatches(graph_, pattern)) {
      std::set<std::string> names;
      match.inside.ForEach([&](PostDfsIndex node) { names.insert(NameOf(node)); });
      all.insert(names);
    }
    return all;
  }
  std::string NameOf(PostDfsIndex node) const {
    if (graph_[node].expr->As<Constant>()) return "const";
    const auto at = name_of_.find(node);
    return at == name_of_.end() ? "result" : at->second;
  }
  const DataflowGraph& graph() const { return graph_; }
  const Expr& operator[](const char* name) const { return names_.at(name); }

 private:
  std::unordered_map<std::string, Expr> names_;
  DataflowGraph graph_;
  std::map<PostDfsIndex, std::string> name_of_;
};

using Sets = std::multiset<std::set<std::string>>;

Program ConvProgram() {
  return Program(R"(fn (%x: Tensor[(1, 4, 8, 8), float32]) -> Tensor[(1, 4, 8, 8), float32] {
    %0 = nn.conv2d(%x, meta[relay.Constant][0] /*Tensor[(4, 4, 1, 1), float32]*/);
    %1 = nn.bias_add(%0, meta[relay.Constant][1] /*Tensor[(4), float32]*/);
    %2 = nn.relu(%1);
    %3 = nn.conv2d(%2, meta[relay.Constant][2] /*Tensor[(4, 4, 1, 1), float32]*/, strides=[1, 1]);
    %4 = add(%3, %0);
    nn.relu(%4)
  })");
}

TEST(PatternMatcher, WildcardsStayOutsideAndConstantsInside) {
  const Program p = ConvProgram();
  EXPECT_EQ(p.Insides(CallOf("nn.conv2d", {Wildcard(), Wildcard()})), (Sets{{"0"}, {"3"}}));
  EXPECT_EQ(p.Insides(CallOf("nn.conv2d", {Wildcard(), IsConstant()})), (Sets{{"0", "const"}, {"3", "const"}}));
  EXPECT_EQ(p.Insides(CallOf("nn.conv2d", {IsVariable("x"), Wildcard()})), (Sets{{"0"}}));
}

TEST(PatternMatcher, EnumeratesEachWayOfTakingOptionals) {
  const Program p = ConvProgram();
  const Pattern conv = CallOf("nn.conv2d", {Wildcard(), Wildcard()});
  const Pattern bias = Optional(conv, [](Pattern inner) { return CallOf("nn.bias_add", {std::move(inner), Wildcard()}); });
  const Pattern relu = Optional(bias, [](Pattern inner) { return CallOf("nn.relu", {std::move(inner)}); });
  EXPECT_EQ(p.Insides(relu), (Sets{{"0"}, {"3"}, {"0", "1"}, {"0", "1", "2"}}));
}

TEST(PatternMatcher, CommutativeOperatorsMatchEitherWayRound) {
  const Program p = ConvProgram();
  const Pattern conv = CallOf("nn.conv2d");
  EXPECT_EQ(p.Insides(CallOf("add", {conv, Wildcard()})), (Sets{{"3", "4"}, {"0", "4"}}));
  EXPECT_EQ(p.Insides(CallOf("subtract", {conv, Wildcard()})), (Sets{}));
}

TEST(PatternMatcher, CapturesAndSame) {
  const Program p(R"(fn (%x: Tensor[(2), float32], %y: Tensor[(2), float32]) -> Tensor[(2), float32] {
    %0 = tanh(%x);
    %1 = multiply(%x, %0);
    %2 = multiply(%y, %0);
    add(%1, %2)
  })");
  const Pattern gate = CallOf("multiply", {Wildcard().As("gated"), CallOf("tanh", {Same("gated")})});
  EXPECT_EQ(p.Insides(gate), (Sets{{"0", "1"}}));
  const std::vector<PatternMatch> matches = AllMatches(p.graph(), gate);
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_EQ(matches[0].match.Find("gated"), p["x"]);
  EXPECT_EQ(matches[0].match.Find("absent"), nullptr);
  EXPECT_EQ(matches[0].match.root, p["1"]);
}

TEST(PatternMatcher, AttributesTypesShapes) {
  const Program p = ConvProgram();
  EXPECT_EQ(p.Insides(HasAttributes(CallOf("nn.conv2d"), {{"strides", AttributeValue(std::vector<int64_t>{1, 1})}})), (Sets{{"0"}, {"3"}}));
  EXPECT_EQ(p.Insides(HasAttributes(CallOf(Wildcard()), {{"kind", "broadcast"}})), (Sets{{"1"}, {"4"}}));
  EXPECT_EQ(p.Insides(HasShape(CallOf("nn.relu"), {1, 4, 8, 8})).size(), 2u);
  EXPECT_EQ(p.Insides(HasShape(CallOf("nn.relu"), {1})).size(), 0u);
  EXPECT_EQ(p.Insides(HasDType(CallOf("nn.relu"), DType::kInt8)).size(), 0u);
}

TEST(PatternMatcher, TuplesProjectionsAndFunctions) {
  const Program p(R"(fn (%c: bool, %x: Tensor[(2), float32]) -> Tensor[(4), float32] {
    %0 = split(%x, indices_or_sections=2);
    %1 = %0.1;
    %2 = (%1, %x, %1);
    %3 = concatenate(%2);
    %5 = fn (%y: Tensor[(4), float32]) -> Tensor[(4), float32] { nn.relu(%y) };
    %6 = %5(%3);
    %7 = if (%c) { %6 } else { %3 };
    let %z = exp(%7);
    tanh(%z)
  })");
  EXPECT_EQ(p.Insides(Projection(CallOf("split"), 1)), (Sets{{"0", "1"}}));
  EXPECT_EQ(p.Insides(Projection(CallOf("split"), 0)), (Sets{}));
  EXPECT_EQ(p.Insides(CallOf("concatenate", {AnyTuple()})), (Sets{{"2", "3"}}));
  EXPECT_EQ(p.Insides(CallOf("concatenate", {IsTuple({Wildcard(), Wildcard()})})), (Sets{}));
  EXPECT_EQ(p.Insides(IsTuple({Projection(Wildcard(), 1).As("a"), Wildcard(), Same("a")})), (Sets{{"1", "2"}}));
  EXPECT_EQ(p.Insides(CallOf(IsFunction({IsVariable()}, CallOf("nn.relu")), {Wildcard()})), (Sets{{"5", "6"}}));
  EXPECT_EQ(p.Insides(CallOf(IsFunction({IsVariable()}, CallOf("tanh")), {Wildcard()})), (Sets{}));
  EXPECT_EQ(p.Insides(IsIf(Wildcard(), Wildcard(), CallOf("concatenate"))), (Sets{{"3", "7"}}));
  EXPECT_EQ(p.Insides(IsLet(Wildcard(), CallOf("exp"), Wildcard())).size(), 1u);
  EXPECT_EQ(p.Insides(IsScalar(0)), (Sets{}));
}

/// Against the definition, on every pair of nodes of small random programs: every path from the parent leads through the child, all
/// that lies on a path from the one to the other matches, and takes nothing else that is computed.
TEST(PatternMatcher, DominatorsAgreeWithTheirDefinition) {
  const Pattern any_call = CallOf(Wildcard());
  size_t found = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const DataflowGraph graph(RandomFunction(seed, 4 + seed % 8));
    std::vector<std::vector<bool>> reaches(graph.size(), std::vector<bool>(graph.size()));
    for (PostDfsIndex j = 0; j < graph.size(); ++j) {
      for (const PostDfsIndex input : graph[j].inputs) {
        reaches[input][j] = true;
        for (PostDfsIndex i = 0; i < graph.size(); ++i) reaches[i][j] = reaches[i][j] || reaches[i][input];
      }
    }
    std::set<std::vector<size_t>> expected;
    for (PostDfsIndex child = 0; child < graph.size(); ++child) {
      for (PostDfsIndex parent = 0; parent < child; ++parent) {
        if (!CalledOp(graph[child].expr) || !CalledOp(graph[parent].expr) || !reaches[parent][child]) continue;
        // A path that avoids the child and ends in the result.
        std::vector<bool> seen(graph.size());
        seen[parent] = true;
        bool dominates = true;
        bool matches = true;
        IndexSet inside({parent, child});
        for (PostDfsIndex i = parent; i < graph.size(); ++i) {
          if (!seen[i] || i == child) continue;
          dominates = dominates && !graph[i].external;
          for (const PostDfsIndex output : graph[i].outputs) seen[output] = true;
          if (i == parent || !reaches[i][child]) continue;
          inside.Add(i);
          matches = matches && CalledOp(graph[i].expr);
        }
        inside.ForEach([&](PostDfsIndex i) {
          for (const PostDfsIndex input : graph[i].inputs) {
            matches = matches && (i == parent || inside.Contains(input) || graph[input].Is<Var>() || graph[input].Is<Constant>());
          }
        });
        if (dominates && matches) expected.insert(inside.ToVector());
      }
    }
    std::set<std::vector<size_t>> actual;
    for (const PatternMatch& match : AllMatches(graph, Dominator(any_call, any_call, any_call))) actual.insert(match.inside.ToVector());
    EXPECT_EQ(actual, expected) << "seed " << seed;
    found += actual.size();
  }
  EXPECT_GT(found, 100u);
}

/// A chain pattern of length k matches at every position of a chain: n - k + 1 times, and each partial result once.
TEST(PatternMatcher, LongChain) {
  const Type type = TensorType{{2}, DType::kFloat32};
  const Expr x = MakeVar("x", type);
  Expr value = x;
  for (int i = 0; i < 20'000; ++i) value = MakeCall(Operators().Find("nn.relu"), {value}).value();
  const DataflowGraph graph(MakeFunction({x}, value).value());
  Pattern chain = Wildcard();
  for (int i = 0; i < 8; ++i) chain = CallOf("nn.relu", {chain});
  EXPECT_EQ(AllMatches(graph, chain).size(), 20'000u - 7u);
}

}  // namespace
}  // namespace collage
