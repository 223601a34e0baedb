#include "collage/explain/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collage {
namespace {

CompileReport Example() {
  CompileReport report;
  report.model = "net.onnx";
  report.threads = 2;
  report.pins = {"%0=dnnl"};
  report.forbids = {"native:nn.conv2d"};
  report.plan = {{"collage_dnnl_conv2d", "dnnl", "winograd", {"nn.conv2d", "nn.relu"}, 12.5, 0.1}};
  report.estimated_us = 13;
  report.lower_bound_us = 13;
  report.drift = 1.125;
  report.assumptions_hold_down_to = 0.75;
  report.proved_lower_bound_us = 2;
  report.decisions_left_out = 3;
  report.winner = "searched";
  report.end_to_end = {{"chosen", 1.5, 1}, {"openvino", 2, 1.25}};
  report.noise_floor = 0.02;
  report.additive_error_us = 1.3;
  report.apparent_loss = -0.2;
  report.elapsed_seconds = 7.5;
  report.budget_seconds = 10;
  report.candidates = {9, 7, 5, 3, {1, 2, 8, 6}};
  report.operators = {{"%0",
                       "nn.conv2d",
                       "dnnl",
                       "winograd",
                       "collage_dnnl_conv2d",
                       12.5,
                       2,
                       "openvino default",
                       3.5,
                       {{"native", "tiled", "no such \"tile\""}}},
                      {"%1", "nn.relu", "dnnl", "winograd", "collage_dnnl_conv2d", 12.5, 2, "", {}, {}, true},
                      {"%2", "nn.relu", "dnnl", "winograd", "collage_dnnl_conv2d", 12.5, 2, "", {}, {}, false, true},
                      {"%3", "reshape", "host", "", "", 0, 1, "", {}, {}}};
  return report;
}

TEST(ReportTest, JsonReadsBackAsItWas) {
  const std::string text = ToJson(Example());
  const Result<CompileReport> read = ReportFromJson(text);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(ToJson(*read), text);
  EXPECT_EQ(read->pins, std::vector<std::string>{"%0=dnnl"});
  EXPECT_TRUE(read->operators[1].pinned);
  EXPECT_EQ(read->operators[0].rejections[0].reason, "no such \"tile\"");
  EXPECT_FALSE(read->operators[1].runner_up_extra_us.has_value());
  EXPECT_TRUE(read->operators[2].left_out);
}

TEST(ReportTest, NamesOfTheHonestTotals) {
  const std::string text = ToJson(Example());
  for (const char* field :
       {"\"additive_error_us\": 1.3", "\"drift\": 1.125", "\"apparent_loss\": -0.2", "\"noise_floor\": 0.02", "\"margin_us\": 0.1",
        "\"elapsed_seconds\": 7.5", "\"budget_seconds\": 10", "\"assumptions_hold_down_to\": 0.75", "\"decisions_left_out\": 3"})
    EXPECT_THAT(text, testing::HasSubstr(field));
  const std::string table = PlanTable(Example());
  EXPECT_THAT(table, testing::HasSubstr("additive error (measured less the sum of prices): +1.3 us (+10.0%)"));
  EXPECT_THAT(table, testing::HasSubstr("apparent loss (searched plan over the best single backend): -20.00%"));
  EXPECT_THAT(table, testing::HasSubstr("noise floor at start (A/A): 2.00%; decisions closer than that: 1 of 1"));
  EXPECT_THAT(table, testing::HasSubstr("as cheap as 75% of what is assumed, no cover would be more than 1% cheaper"));
  EXPECT_THAT(table, testing::HasSubstr("decisions without a margin, the plan around them being too large to search again: 3"));
  EXPECT_THAT(table, testing::HasSubstr("budget: 7.5 s of 10.0 s spent"));
}

TEST(ReportTest, WhatIsNotThereIsNullAndReadsBack) {
  CompileReport report;
  report.plan = {{"a", "dnnl", "direct", {"nn.relu"}, 1}};
  const CompileReport read = ReportFromJson(ToJson(report)).value();
  EXPECT_FALSE(read.additive_error_us || read.apparent_loss || read.noise_floor || read.budget_seconds || read.assumptions_hold_down_to ||
               read.plan[0].margin_us);
}

TEST(ReportTest, MalformedJsonIsAnError) {
  for (const char* text : {"", "{", "{}", "[]", R"({"model": 3})"}) EXPECT_FALSE(ReportFromJson(text).has_value()) << text;
}

TEST(ReportTest, TheExplanationNamesRunnerPriceRunnerUpAndRefusal) {
  const std::string text = ExplanationText(Example());
  EXPECT_THAT(text, testing::HasSubstr("runner-up openvino default (+3.5 us)"));
  EXPECT_THAT(text, testing::HasSubstr("refused: native tiled: no such \"tile\""));
  EXPECT_THAT(text, testing::HasSubstr("12.5 us"));
  EXPECT_THAT(text, testing::HasSubstr("; pinned"));
  EXPECT_THAT(text, testing::HasSubstr("--forbid native:nn.conv2d"));
  EXPECT_THAT(text, testing::HasSubstr("host"));
}

}  // namespace
}  // namespace collage
