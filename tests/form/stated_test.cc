// Rules of users. What places are taken and refused, tests/golden/forms.json says.

#include <gmock/gmock.h>

#include "collage/form/rules.h"
#include "tests/form/form_testing.h"

namespace collage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

FormRule ByMaximum() {
  return StatedForm(
      "by_maximum", pattern::CallOf("nn.relu", {pattern::Wildcard().As("data")}), [](const Match&) { return Verdict::Accept(); },
      [](const std::vector<Match>& matches) -> Result<std::vector<Expr>> {
        return std::vector<Expr>{COLLAGE_TRY(CallOp("maximum", {matches.front().Find("data"), MakeConstant(Tensor(TensorType{}))}))};
      });
}

std::shared_ptr<const DataflowGraph> TwoRelus() {
  return std::make_shared<const DataflowGraph>(
      FunctionOf("fn (%x: Tensor[(2, 3), float32]) { %0 = nn.relu(%x); %1 = tanh(%0); nn.relu(%1) }"));
}

TEST(StatedForms, AreToldAsTheyAreCompared) {
  std::vector<size_t> done;
  Progress progress;
  progress.report = [&](const ProgressEvent& event) {
    EXPECT_EQ(event.stage, "comparing forms");
    EXPECT_EQ(event.detail, "by_maximum");
    done.push_back(event.done);
  };
  EXPECT_THAT(FindForms(TwoRelus(), {ByMaximum()}, {}, progress)->forms, SizeIs(2));
  EXPECT_THAT(done, ElementsAre(1, 2));
}

TEST(StatedForms, AreNotTakenUncomparedWhereTheUserEndsTheWait) {
  const std::atomic<bool> stop = true;
  Progress progress;
  progress.stop_requested = &stop;
  const FormedGraph formed = FindForms(TwoRelus(), {ByMaximum()}, {}, progress).value();
  EXPECT_THAT(formed.forms, IsEmpty());
  ASSERT_THAT(formed.refused, SizeIs(2));
  EXPECT_THAT(formed.refused.front().reason, HasSubstr("could not be compared"));
}

TEST(StatedForms, OfCollageItselfAreNotHeldToThat) {
  FormRule wrong = ByMaximum();
  wrong.replacement = [](const std::vector<Match>& matches) -> Result<std::vector<Expr>> {
    return std::vector<Expr>{COLLAGE_TRY(CallOp("abs", {matches.front().Find("data")}))};
  };
  EXPECT_THAT(FindForms(TwoRelus(), {wrong})->forms, IsEmpty());
  wrong.is_stated = false;
  EXPECT_THAT(FindForms(TwoRelus(), {wrong})->forms, SizeIs(2));
}

}  // namespace
}  // namespace collage
