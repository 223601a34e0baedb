#include "collage/form/form.h"

#include <gmock/gmock.h>

#include "collage/form/rules.h"
#include "tests/form/form_testing.h"
#include "tests/form/relus_of_one_tensor.h"

namespace collage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// relu as the larger of its argument and itself, twice.
FormRule Twice() {
  return {"twice", pattern::CallOf("nn.relu", {pattern::Wildcard().As("data")}), [](const Match&) { return Verdict::Accept(); },
          [](const std::vector<Match>& matches) -> Result<std::vector<Expr>> {
            const Expr once = COLLAGE_TRY(CallOp("nn.relu", {matches.front().Find("data")}));
            return std::vector<Expr>{COLLAGE_TRY(CallOp("maximum", {once, once}))};
          }};
}

/// relu of a sum.
FormRule Sum() {
  return {"sum", pattern::CallOf("nn.relu", {pattern::CallOf("add", {pattern::Wildcard().As("a"), pattern::Wildcard().As("b")})}),
          [](const Match&) { return Verdict::Accept(); },
          [](const std::vector<Match>& matches) -> Result<std::vector<Expr>> {
            const Expr sum = COLLAGE_TRY(CallOp("add", {matches.front().Find("b"), matches.front().Find("a")}));
            return std::vector<Expr>{COLLAGE_TRY(CallOp("nn.relu", {sum}))};
          }};
}

/// relus of one tensor as one relu of its concatenation with itself.
FormRule Siblings() {
  FormRule rule = Twice();
  rule.name = "siblings";
  rule.joins = [](const Match&, const Match&) { return true; };
  rule.replacement = AsPartsOfOneRelu;
  return rule;
}

constexpr const char* kChain = "fn (%x: Tensor[(2, 3), float32]) { %0 = tanh(%x); %1 = nn.relu(%0); %2 = sigmoid(%1); nn.relu(%2) }";

TEST(FindForms, WithoutMatchesTheGraphIsTheFunctionsOwn) {
  const auto graph = std::make_shared<const DataflowGraph>(FunctionOf("fn (%x: Tensor[(2,), float32]) { tanh(%x) }"));
  const FormedGraph formed = FindForms(graph, {Twice(), Sum(), Siblings()}).value();
  EXPECT_EQ(formed.graph, graph);
  EXPECT_TRUE(formed.forms.empty());
}

TEST(FindForms, NodesOfTheFunctionKeepTheirNumbersAndThoseOfFormsFollow) {
  const auto graph = std::make_shared<const DataflowGraph>(FunctionOf(kChain));
  const FormedGraph formed = FindForms(graph, {Twice()}).value();
  ASSERT_EQ(formed.forms.size(), 2u);
  for (const Form& form : formed.forms) {
    EXPECT_EQ(form.rule, "twice");
    ASSERT_EQ(form.roots.size(), 1u);
    const FormRoot& root = form.roots.front();
    EXPECT_EQ(form.covered.ToVector(), std::vector<size_t>{root.gate});
    EXPECT_EQ(root.covered, form.covered);
    EXPECT_EQ((*graph)[root.gate].op->name, "nn.relu");
    EXPECT_EQ(root.added.Count(), 2u);
    EXPECT_GE(root.added.First(), graph->size() - 1);
    EXPECT_EQ((*formed.graph)[root.node].op->name, "maximum");
    EXPECT_EQ(formed.FormOf(root.node), static_cast<size_t>(&form - formed.forms.data()));
    EXPECT_EQ(formed.RootOf(root.node), &root);
  }
  EXPECT_EQ(formed.FormOf(formed.forms[0].roots.front().gate), FormedGraph::kNoForm);
}

TEST(FindForms, WhatOthersUseOfTheInsideStays) {
  EXPECT_EQ(FormsIn(FunctionOf("fn (%x: Tensor[(2,), float32]) { %0 = add(%x, %x); nn.relu(%0) }"), {Sum()}).forms.size(), 1u);
  EXPECT_TRUE(FormsIn(FunctionOf("fn (%x: Tensor[(2,), float32]) { %0 = add(%x, %x); %1 = nn.relu(%0); multiply(%0, %1) }"), {Sum()})
                  .forms.empty());
}

TEST(FindForms, WhatAUserForbidsIsNone) {
  const auto graph = std::make_shared<const DataflowGraph>(FunctionOf(kChain));
  const auto may = [&](const FormRule& rule, const IndexSet& covered) { return rule.name == "twice" && covered.First() == 2; };
  EXPECT_EQ(FindForms(graph, {Twice(), Siblings()}, may).value().forms.size(), 1u);
}

TEST(FindForms, AReplacementOfAnotherTypeIsAnError) {
  FormRule rule = Twice();
  rule.replacement = [](const std::vector<Match>& matches) -> Result<std::vector<Expr>> {
    return std::vector<Expr>{COLLAGE_TRY(CallOp("reshape", {matches.front().Find("data")}, {{"newshape", std::vector<int64_t>{6}}}))};
  };
  const auto graph = std::make_shared<const DataflowGraph>(FunctionOf(kChain));
  EXPECT_THAT(FindForms(graph, {rule}).error().message, HasSubstr("form twice makes Tensor[(6,), float32] of Tensor[(2, 3), float32]"));
}

TEST(FindForms, SiblingsAreTakenTogetherAndNeverOneAlone) {
  const std::string three =
      "fn (%x: Tensor[(2,), float32]) { %0 = nn.relu(%x); %1 = tanh(%0); %2 = nn.relu(%x); %3 = nn.relu(%1); add(add(%1, %2), %3) }";
  ExpectEqualForms(three, Siblings());
  const FormedGraph formed = FormsIn(FunctionOf(three), {Siblings()});
  ASSERT_EQ(formed.forms.size(), 1u);
  EXPECT_EQ(formed.forms[0].covered.Count(), 2u);
  EXPECT_EQ(formed.forms[0].tensors.size(), 2u);
  ASSERT_EQ(formed.forms[0].roots.size(), 1u);
  EXPECT_EQ((*formed.graph)[formed.forms[0].roots.front().node].op->name, "split");
}

TEST(ApplyForms, TakesSeveralThatFollowEachOther) {
  const Expr function = FunctionOf(kChain);
  const FormedGraph formed = FormsIn(function, {Twice()});
  const Expr both = ApplyForms(formed, {0, 1}).value().function;
  EXPECT_EQ(PrintExpr(both).text,
            "fn (%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {\n"
            "  %0 = tanh(%x);\n"
            "  %1 = nn.relu(%0);\n"
            "  %2 = maximum(%1, %1);\n"
            "  %3 = sigmoid(%2);\n"
            "  %4 = nn.relu(%3);\n"
            "  maximum(%4, %4)\n"
            "}\n");
  EXPECT_EQ(RelativeDifference(ResultsOf(both)[0], ResultsOf(function)[0]), 0);
}

TEST(ApplyForms, WithoutAnyTheFunctionStays) {
  const FormedGraph formed = FormsIn(FunctionOf(kChain), {Twice()});
  EXPECT_EQ(PrintExpr(ApplyForms(formed, {}).value().function).text, PrintExpr(formed.function).text);
}

TEST(LayersOfForms, FormsOfOneOperatorAreInLayersOfTheirOwn) {
  const FormedGraph formed =
      FormsIn(FunctionOf("fn (%x: Tensor[(2,), float32]) { %0 = add(%x, %x); %1 = nn.relu(%0); nn.relu(%1) }"), {Sum(), Twice()});
  ASSERT_EQ(formed.forms.size(), 3u);
  EXPECT_THAT(LayersOfForms(formed), ElementsAre(ElementsAre(0, 2), ElementsAre(1)));
}

}  // namespace
}  // namespace collage
