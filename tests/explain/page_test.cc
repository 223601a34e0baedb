#include "collage/explain/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/explain/elsewhere.h"
#include "collage/explain/what_if_report.h"

namespace collage {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Three operators in a row. "library" takes both of the first for 15 us and the third for 10; "native" each of the first for 12 and was
/// refused for the third; "slow" was never timed.
RecordedProblem Three() {
  RecordedProblem recorded;
  SearchProblem& problem = recorded.problem;
  problem.node_count = 3;
  problem.backend_count = 4;
  problem.tensors = {{0, {1}, false}, {1, {2}, false}, {2, {}, true}, {SearchTensor::kOutside, {0}, false}};
  const auto add = [&](const std::vector<size_t>& inside, size_t backend, Cost price) {
    const size_t input = inside.front() == 0 ? 3 : inside.front() - 1;
    problem.candidates.push_back({IndexSet(inside), backend, {input}, {inside.back()}, {{price, {0}, {0}}}});
    recorded.bounds.push_back({price.IsKnown() ? price : Cost::Microseconds(1)});
    recorded.variants.push_back({"direct"});
  };
  add({0, 1}, 0, Cost::Microseconds(15));
  add({2}, 0, Cost::Microseconds(10));
  add({0}, 1, Cost::Microseconds(12));
  add({1}, 1, Cost::Microseconds(12));
  add({2}, 1, Cost::Invalid());
  add({2}, 2, Cost::Unknown());
  recorded.backends = {"library", "native", "slow", "idle"};
  recorded.nodes = {"%0", "%1", "%2"};
  recorded.operators = {"nn.conv2d", "nn.relu", "nn.softmax"};
  recorded.onnx_nodes = {{"</script><!--"}, {"relu"}, {"softmax"}};
  recorded.chosen = {{0, 0}, {1, 0}};
  return recorded;
}

PageProfile Page() {
  CompileReport report;
  report.model = "net.onnx";
  return {ToMetadata(report, Three())};
}

TEST(ElsewhereTest, SaysWhatItCostsOrWhyNobodyKnows) {
  const std::vector<std::vector<Elsewhere>> all = FindElsewhere(Three());
  ASSERT_EQ(all.size(), 3);
  ASSERT_EQ(all[0].size(), 3);
  EXPECT_EQ(all[0][0].known, Elsewhere::Known::kPrice);
  EXPECT_EQ(all[0][0].backend, 1);
  EXPECT_DOUBLE_EQ(all[0][0].extra.ToMicroseconds(), 9);
  EXPECT_EQ(all[0][0].choices, (std::vector<SearchChoice>{{2, 0}, {3, 0}}));
  EXPECT_EQ(all[2][0].known, Elsewhere::Known::kRefused);
  EXPECT_EQ(all[2][1].known, Elsewhere::Known::kNotTimed);
  EXPECT_EQ(all[2][2].known, Elsewhere::Known::kNoCandidate);
}

TEST(ElsewhereTest, WithoutAChosenPlanThereIsNothingToCompareWith) {
  RecordedProblem recorded = Three();
  recorded.chosen.clear();
  EXPECT_TRUE(FindElsewhere(recorded).empty());
}

TEST(ElsewhereTest, AloneABackendLeavesToOthersWhatItHasNoPriceFor) {
  const std::vector<AlonePlan> plans = FindAlone(Three());
  ASSERT_EQ(plans.size(), 2);
  EXPECT_EQ(plans[0].backend, 0);
  EXPECT_EQ(plans[0].left_to_others, 0);
  EXPECT_EQ(plans[1].backend, 1);
  EXPECT_EQ(plans[1].left_to_others, 1);
  EXPECT_DOUBLE_EQ(plans[1].plan.cost.ToMicroseconds(), 34);
}

TEST(PageTest, IsWholeAndNothingInItsDataEndsTheData) {
  const std::string page = ReportPage("<a&b>.collage", {Page()}).value();
  EXPECT_THAT(page, HasSubstr("<title>&lt;a&amp;b>.collage"));
  EXPECT_THAT(page, HasSubstr("\\u003c/script>\\u003c!--"));
  EXPECT_THAT(page, Not(HasSubstr("</script><!--")));
  for (const char* place : {"@TITLE@", "@STYLE@", "@DATA@", "@SCRIPT@"}) EXPECT_THAT(page, Not(HasSubstr(place)));
  EXPECT_TRUE(page.ends_with("</html>\n"));
}

TEST(PageTest, DataThatLooksLikeAPlaceOfTheFrameStaysData) {
  const std::string page = ReportPage("@SCRIPT@", {Page()}).value();
  EXPECT_THAT(page, HasSubstr("<title>@SCRIPT@"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
}

TEST(PageTest, MalformedMetadataIsAnError) { EXPECT_FALSE(ReportPage("a", {{"{"}}).has_value()); }

}  // namespace
}  // namespace collage
