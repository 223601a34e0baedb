#include "collage/candidate/library_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/ir/parse.h"
#include "collage/op/table.h"

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// "dense_bias | add exp": what is called, and what is generated behind it.
std::vector<std::string> Found(const std::string& body, LibraryCallOptions options, std::vector<Refusal>* refusals = nullptr) {
  using namespace pattern;  // NOLINT(google-build-using-namespace)
  ParseOptions parse;
  parse.missing_constant = ZeroConstants();
  const std::string text =
      "fn (%x: Tensor[(4, 8), float32], %r: Tensor[(4, 6), float32]) { %0 = nn.dense(%x, meta[relay.Constant][0] "
      "/*Tensor[(6, 8), float32]*/); " +
      body + " }";
  const auto parsed = ParseExpr(text, Operators(), parse);
  if (!parsed) return {parsed.error().message};
  const DataflowGraph graph(parsed->expr);
  const Pattern dense = CallOf("nn.dense", {Wildcard(), IsConstant()});
  options.callable = {{"library.dense", dense, {}}, {"library.dense_bias", CallOf("nn.bias_add", {dense, IsConstant()}), {}}};
  if (!options.may_follow) {
    options.may_follow = [](const Expr& call) {
      const bool leaves = IsCallOf(call, "nn.dense") || IsCallOf(call, "transpose");
      return leaves ? Verdict::Reject("it leaves the rows") : Verdict::Accept();
    };
  }
  if (!options.supports_calls) options.supports_calls = [](const Function&) { return Verdict::Accept(); };
  std::vector<std::string> found;
  for (const SubGraph& sub_graph : LibraryCallsRule(options)->AllSubGraphs(graph, refusals)) {
    EXPECT_TRUE(sub_graph.IsValid(graph, {.max_exits = 1}));
    const NestedSubGraph& called = sub_graph.nested()[0];
    std::string names = *called.attributes.Find("Composite")->AsString() + " |";
    sub_graph.inside().ForEach([&](PostDfsIndex node) {
      if (!called.sub_graph.inside().Contains(node)) names += " " + graph[node].op->name;
    });
    found.push_back(names);
  }
  return found;
}

constexpr const char* kBias = "%1 = nn.bias_add(%0, meta[relay.Constant][1] /*Tensor[(6), float32]*/, axis=-1); ";

TEST(LibraryCalls, TheLargestMatchAndAllThatFollows) {
  EXPECT_THAT(Found(std::string(kBias) + "%2 = add(%1, %r); %3 = mean(%2, axis=[1], keepdims=True); %4 = subtract(%2, %3); exp(%4)", {}),
              ElementsAre("library.dense_bias | add mean subtract exp"));
  EXPECT_THAT(Found("%1 = multiply(%0, 2f); tanh(%1)", {}), ElementsAre("library.dense | multiply tanh"));
}

TEST(LibraryCalls, NothingWhereNothingFollows) {
  EXPECT_THAT(Found("%0", {}), IsEmpty());
  EXPECT_THAT(Found("(%0, exp(%0))", {}), IsEmpty()) << "the product leaves the function itself";
}

TEST(LibraryCalls, NothingWhereTheLibraryCouldDoAllOfIt) { EXPECT_THAT(Found(std::string(kBias) + "%1", {}), IsEmpty()); }

TEST(LibraryCalls, WhatFollowsEndsWhereTheGeneratorSays) {
  const std::string next = "nn.dense(%2, meta[relay.Constant][2] /*Tensor[(3, 6), float32]*/)";
  EXPECT_THAT(Found(std::string(kBias) + "%2 = exp(%1); " + next, {}), ElementsAre("library.dense_bias | exp"));
  EXPECT_THAT(Found("%1 = exp(%0); transpose(%1, axes=[1, 0])", {}), ElementsAre("library.dense | exp"));
}

TEST(LibraryCalls, AValueWithTwoUsersWithoutCommonEndIsTheLast) {
  EXPECT_THAT(Found("%1 = exp(%0); %2 = tanh(%1); (%1, %2)", {}), ElementsAre("library.dense | exp"));
}

TEST(LibraryCalls, WhatTheGeneratorRefusesIsTriedSmaller) {
  LibraryCallOptions options;
  options.supports_calls = [](const Function& function) {
    return IsCallOf(function.body, "tanh") ? Verdict::Reject("no tanh at the end") : Verdict::Accept();
  };
  EXPECT_THAT(Found("%1 = exp(%0); %2 = sqrt(%1); tanh(%2)", options), ElementsAre("library.dense | exp sqrt"));
  options.supports_calls = [](const Function&) { return Verdict::Reject("never"); };
  std::vector<Refusal> refusals;
  EXPECT_THAT(Found("%1 = exp(%0); tanh(%1)", options, &refusals), IsEmpty());
  ASSERT_THAT(refusals, SizeIs(1));
  EXPECT_EQ(refusals[0].rule, "calls of library.dense");
  EXPECT_EQ(refusals[0].reason, "never");
}

TEST(LibraryCalls, CallsThatCannotBeGeneratedDoNotFollow) {
  LibraryCallOptions options;
  options.may_follow = [](const Expr& call) { return IsCallOf(call, "sqrt") ? Verdict::Reject("no sqrt") : Verdict::Accept(); };
  EXPECT_THAT(Found("%1 = exp(%0); %2 = sqrt(%1); tanh(%2)", options), ElementsAre("library.dense | exp"));
}

TEST(LibraryCalls, SmallResultsAreLeft) {
  LibraryCallOptions options;
  options.least_bytes = 4 * 6 * 4;
  EXPECT_THAT(Found("exp(%0)", options), SizeIs(1));
  ++options.least_bytes;
  EXPECT_THAT(Found("exp(%0)", options), IsEmpty());
}

}  // namespace
}  // namespace collage
