#include "collage/explain/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collage {
namespace {

CompileReport Example() {
  CompileReport report;
  report.model = "net.onnx";
  report.threads = 2;
  report.plan = {{"collage_dnnl_conv2d", "dnnl", "winograd", {"nn.conv2d", "nn.relu"}, 12.5}};
  report.estimated_us = 13;
  report.lower_bound_us = 13;
  report.winner = "searched";
  report.end_to_end = {{"chosen", 1.5, 1}, {"openvino", 2, 1.25}};
  report.candidates = {9, 7, 5, 3, 1, 2};
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
                      {"%1", "nn.relu", "dnnl", "winograd", "collage_dnnl_conv2d", 12.5, 2, "", {}, {}},
                      {"%2", "reshape", "host", "", "", 0, 1, "", {}, {}}};
  return report;
}

TEST(ReportTest, JsonReadsBackAsItWas) {
  const std::string text = ToJson(Example());
  const Result<CompileReport> read = ReportFromJson(text);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(ToJson(*read), text);
  EXPECT_EQ(read->operators[0].rejections[0].reason, "no such \"tile\"");
  EXPECT_FALSE(read->operators[1].runner_up_extra_us.has_value());
}

TEST(ReportTest, MalformedJsonIsAnError) {
  for (const char* text : {"", "{", "{}", "[]", R"({"model": 3})"}) EXPECT_FALSE(ReportFromJson(text).has_value()) << text;
}

TEST(ReportTest, TheExplanationNamesRunnerPriceRunnerUpAndRefusal) {
  const std::string text = ExplanationText(Example());
  EXPECT_THAT(text, testing::HasSubstr("runner-up openvino default (+3.5 us)"));
  EXPECT_THAT(text, testing::HasSubstr("refused: native tiled: no such \"tile\""));
  EXPECT_THAT(text, testing::HasSubstr("12.5 us"));
  EXPECT_THAT(text, testing::HasSubstr("host"));
}

}  // namespace
}  // namespace collage
