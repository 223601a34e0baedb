#include "collage/form/rules.h"
#include "tests/form/form_testing.h"

namespace collage {
namespace {

FormedGraph Formed(const std::string& text) { return FormsIn(FunctionOf(text), {RecomputationForm()}); }

/// The mask is spread over rows, and two sums read it.
constexpr const char* kMasked =
    "fn (%x: Tensor[(1, 4, 8, 8), float32], %m: Tensor[(1, 1, 1, 8), float32]) { %0 = multiply(%m, -8f); "
    "%1 = broadcast_to(%0, shape=[1, 4, 8, 8]); %2 = add(%x, %1); %3 = nn.softmax(%2); add(%3, %1) }";

TEST(RecomputationForm, EachUserComputesItsOwn) {
  ExpectEqualForms(kMasked, RecomputationForm());
  const FormedGraph formed = Formed(kMasked);
  ASSERT_EQ(formed.forms.size(), 1u);
  const Form& form = formed.forms[0];
  ASSERT_EQ(form.roots.size(), 2u) << "one for each user";
  EXPECT_EQ(form.covered.Count(), 4u) << "two users, what they read, and what that alone reads";
  EXPECT_EQ(form.roots[0].covered.Count(), 3u) << "with what only both users together need";
  EXPECT_EQ(form.roots[1].covered.Count(), 1u);
  EXPECT_LT(form.roots[0].gate, form.roots[1].gate);
  for (const FormRoot& root : form.roots) EXPECT_EQ(root.added.Count(), 3u);
  EXPECT_EQ(PrintExpr(WithForm(formed, 0)).text,
            "fn (%x: Tensor[(1, 4, 8, 8), float32], %m: Tensor[(1, 1, 1, 8), float32]) -> Tensor[(1, 4, 8, 8), float32] {\n"
            "  %0 = multiply(%m, -8f);\n"
            "  %1 = broadcast_to(%0, shape=[1, 4, 8, 8]);\n"
            "  %2 = add(%x, %1);\n"
            "  %3 = nn.softmax(%2);\n"
            "  %4 = multiply(%m, -8f);\n"
            "  %5 = broadcast_to(%4, shape=[1, 4, 8, 8]);\n"
            "  add(%3, %5)\n"
            "}\n");
}

TEST(RecomputationForm, OfWhatGrowsInSeveralSteps) {
  // The sum serves the broadcast alone, and reads no more than its result has; softmax is a sum, and stays.
  const std::string chain =
      "fn (%x: Tensor[(2, 1), float32]) { %0 = nn.softmax(%x, axis=0); %1 = add(%0, 1f); %2 = broadcast_to(%1, shape=[2, 8]); "
      "%3 = nn.relu(%2); %4 = concatenate((%3, %3), axis=1); %5 = sigmoid(%3); concatenate((%4, %5), axis=1) }";
  ExpectEqualForms(chain, RecomputationForm());
  const FormedGraph formed = Formed(chain);
  EXPECT_EQ(formed.forms[0].covered.Count(), 5u);
  for (const FormRoot& root : formed.forms[0].roots) EXPECT_EQ(root.added.Count(), 4u) << "of a tuple that holds it twice, one";
}

TEST(RecomputationForm, IsNoneWhereNothingGrowsOrNothingIsSpared) {
  const auto none = [](const std::string& body) { ExpectNoForm("fn (%x: Tensor[(2, 1), float32]) { " + body + " }", RecomputationForm()); };
  const std::string grows = "%0 = broadcast_to(%x, shape=[2, 8]); ";
  none("%0 = nn.relu(%x); add(tanh(%0), sigmoid(%0))");                                   // reads as much
  none(grows + "nn.softmax(%0)");                                                         // one user
  none(grows + "%1 = nn.softmax(%0); add(tanh(%1), sigmoid(%1))");                        // a sum
  none(grows + "%1 = reshape(%0, newshape=[16]); add(tanh(%1), sigmoid(%1))");            // a view of what has one user
  none(grows + "add(sum(reshape(%0, newshape=[16])), sum(%0))");                          // a view would store it
  none(grows + "(tanh(%0), sigmoid(%0), %0)");                                            // a result of the function
  none(grows + "%1 = split(%0, indices_or_sections=2, axis=1); (tanh(%0), %1.0, %1.1)");  // lies in place
}

TEST(RecomputationForm, OfALongChainIsAsMuchAsACandidateMayHold) {
  std::string text = "fn (%x: Tensor[(2, 1), float32]) { %0 = tanh(%x);";
  for (int i = 1; i < 10000; ++i) text += " %" + std::to_string(i) + " = tanh(%" + std::to_string(i - 1) + ");";
  text += " %10000 = broadcast_to(%9999, shape=[2, 8]); add(tanh(%10000), sigmoid(%10000)) }";
  const FormedGraph formed = Formed(text);
  ASSERT_EQ(formed.forms.size(), 1u);
  for (const FormRoot& root : formed.forms[0].roots) EXPECT_EQ(root.added.Count(), kMostOperatorsAroundForms);
}

}  // namespace
}  // namespace collage
