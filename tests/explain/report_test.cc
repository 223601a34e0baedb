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
  report.plan[0].work = PlanWork{1e6, 4096, 0.5};
  report.estimated_us = 13;
  report.lower_bound_us = 13;
  report.drift = 1.125;
  report.open = 0.004;
  report.missing = {{"dnnl (greedy)", "no variant"}};
  report.not_compared = "2 operators";
  report.rounding = "rounding alone takes the reference far";
  report.remainder = "4 nodes, since extents depend on data: node 'nms'";
  report.proved_lower_bound_us = 2;
  report.decisions_left_out = 3;
  report.winner = "searched";
  report.end_to_end = {{"chosen", 1.5, 1}, {"openvino", 2, 1.25}};
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
  EXPECT_EQ(read->plan[0].work->roofline_us, 0.5);
  EXPECT_TRUE(read->operators[1].pinned);
  EXPECT_EQ(read->operators[0].rejections[0].reason, "no such \"tile\"");
  EXPECT_FALSE(read->operators[1].runner_up_extra_us.has_value());
  EXPECT_TRUE(read->operators[2].left_out);
  EXPECT_EQ(read->remainder, Example().remainder);
}

TEST(ReportTest, NamesOfTheHonestTotals) {
  const std::string text = ToJson(Example());
  for (const char* field :
       {"\"additive_error_us\": 1.3", "\"drift\": 1.125", "\"apparent_loss\": -0.2", "\"not_compared\": \"2 operators\"",
        "\"rounding\": \"rounding alone takes the reference far\"", "\"remainder\": \"4 nodes, since extents depend on data: node 'nms'\"",
        "\"margin_us\": 0.1", "\"elapsed_seconds\": 7.5", "\"budget_seconds\": 10", "\"open\": 0.004", "\"decisions_left_out\": 3"})
    EXPECT_THAT(text, testing::HasSubstr(field));
  const std::string table = PlanTable(Example());
  EXPECT_THAT(table, testing::HasSubstr("additive error (measured less the estimate for the race): +1.3 us (+10.0%)"));
  EXPECT_THAT(table, testing::HasSubstr("apparent loss (searched plan over the best single backend): -20.00%"));
  EXPECT_THAT(table, testing::HasSubstr("dnnl (greedy)                  did not race: no variant"));
  EXPECT_THAT(table, testing::HasSubstr("not compared with the reference: 2 operators"));
  EXPECT_THAT(table, testing::HasSubstr("\n  rounding alone takes the reference far\n"));
  EXPECT_THAT(table, testing::HasSubstr("behind the plan, on the reference kernels: 4 nodes, since extents depend on data: node 'nms'"));
  EXPECT_THAT(table, testing::HasSubstr("decisions without a margin, the plan around them being too large to search again: 3"));
  EXPECT_THAT(table, testing::HasSubstr("budget: 7.5 s of 10.0 s spent"));
}

// One plan has one predicted time: the sum of the prices beside it. What it was in the race is said once, with the reason.
TEST(ReportTest, PredictionsAreAsThePricesSay) {
  CompileReport report = Example();
  report.estimated_us = 27;
  report.lower_bound_us = 18;
  report.tie = ReportedTie{0.1, 1, 24.75};
  const std::string table = PlanTable(report);
  EXPECT_THAT(table, testing::StartsWith("plan: 1 partitions, estimated 24.0 us\n"));
  EXPECT_THAT(table, testing::HasSubstr("likely bound 16.0 us, proved bound 2.0 us"));
  EXPECT_THAT(table, testing::HasSubstr("the cheapest has 1 partitions and is 2.0 us cheaper"));
  EXPECT_THAT(
      table, testing::HasSubstr("the machine ran 1.12 times as slowly as when the prices were taken, so the estimate for it is 27.0 us\n"));
  report.lower_bound_us = report.proved_lower_bound_us;
  EXPECT_THAT(PlanTable(report), testing::HasSubstr("likely bound 2.0 us, proved bound 2.0 us"));
}

TEST(ReportTest, WhatIsNotThereIsNullAndReadsBack) {
  CompileReport report;
  report.plan = {{"a", "dnnl", "direct", {"nn.relu"}, 1}};
  const CompileReport read = ReportFromJson(ToJson(report)).value();
  EXPECT_FALSE(read.additive_error_us || read.apparent_loss || read.budget_seconds || read.open > 0 || read.plan[0].margin_us);
  EXPECT_FALSE(read.noise);
}

// The searched plan is no backend's, and is timed beside the library that won.
TEST(ReportTest, EveryPlanOfTheRaceHasOneTitle) {
  CompileReport report = Example();
  report.winner = "openvino";
  report.end_to_end = {{"chosen", 1.5, 1}, {"searched", 1.6, 1.07}, {"openvino", 1.5, 1}, {"in float32", 2, 1.3}};
  const std::string json = ToJson(report);
  for (const std::string title : {"chosen (openvino)", "searched", "openvino alone", "in float32 (as far as known)"}) {
    EXPECT_THAT(PlanTable(report), testing::HasSubstr("\n  " + title + " "));
    EXPECT_THAT(json, testing::HasSubstr(": \"" + title + "\""));
  }
}

TEST(ReportTest, OfTooFewRoundsNoNoiseIsKnown) {
  CompileReport report = Example();
  EXPECT_THAT(PlanTable(report), testing::HasSubstr("noise of this race (A/A): not known, too few rounds"));
  report.noise = 0.0125;
  EXPECT_THAT(PlanTable(report), testing::HasSubstr("noise of this race (A/A): 1.25%"));
  EXPECT_EQ(ReportFromJson(ToJson(report))->noise, 0.0125);
}

TEST(ReportTest, ThePermittedPrecisionReadsBackAndFilesOfBeforeDoWithout) {
  CompileReport report = Example();
  EXPECT_EQ(ToJson(report).find("precision"), std::string::npos);
  EXPECT_EQ(PlanTable(report).find("permitted"), std::string::npos);
  report.precision = ReportedPrecision{"bf16", 0.02, 7, 1};
  report.plan[0].precision = "bf16";
  report.end_to_end[0].difference = 0.004;
  const CompileReport read = ReportFromJson(ToJson(report)).value();
  EXPECT_EQ(ToJson(read), ToJson(report));
  EXPECT_EQ(read.precision->tolerance, 0.02);
  EXPECT_EQ(read.plan[0].precision, "bf16");
  EXPECT_THAT(PlanTable(read),
              testing::HasSubstr("  bf16 permitted to a tolerance of 2.0e-02: 1 of 1 partitions use it, of 7 such kernels "
                                 "that were offered\n  differs from the float32 reference by 4.0e-03 of the largest value\n"));
  report.precision->offered = report.precision->taken = 0;
  EXPECT_THAT(PlanTable(report), testing::HasSubstr("no backend has such kernels for this model on this processor"));
}

TEST(ReportTest, MalformedJsonIsAnError) {
  for (const char* text : {"", "{", "{}", "[]", R"({"model": 3})"}) EXPECT_FALSE(ReportFromJson(text).has_value()) << text;
}

TEST(ReportTest, TheExplanationNamesRunnerPriceRunnerUpAndRefusal) {
  const std::string text = ExplanationText(Example(), ExplanationDetail::kOperators);
  EXPECT_THAT(text, testing::HasSubstr("runner-up openvino default (+3.5 us)"));
  EXPECT_THAT(text, testing::HasSubstr("refused: native tiled: no such \"tile\""));
  EXPECT_THAT(text, testing::HasSubstr("12.5 us"));
  EXPECT_THAT(text, testing::HasSubstr("; pinned"));
  EXPECT_THAT(text, testing::HasSubstr("--forbid native:nn.conv2d"));
  EXPECT_THAT(text, testing::HasSubstr("host"));
}

/// Three partitions of a model: a convolution with its normalisation and activation, a region of many nodes, a softmax.
CompileReport OfAModel() {
  CompileReport report;
  report.estimated_us = 40;
  report.lower_bound_us = 40;
  const auto add = [&](const PlanEntry& entry, const std::string& runner_up, const std::vector<std::vector<std::string>>& nodes) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      OperatorPlacement placement;
      placement.name = "%" + std::to_string(report.operators.size());
      placement.op = entry.operators[i];
      placement.backend = entry.backend;
      placement.variant = entry.variant;
      placement.symbol = entry.symbol;
      placement.cost_us = entry.cost_us;
      placement.sharers = nodes.size();
      placement.runner_up = runner_up;
      if (!runner_up.empty()) placement.runner_up_extra_us = 2.5;
      placement.nodes = nodes[i];
      report.operators.push_back(placement);
    }
    if (!entry.symbol.empty()) report.plan.push_back(entry);
  };
  add({"p0", "dnnl", "direct", {"nn.conv2d", "nn.bias_add", "nn.relu"}, 20, {}, {"conv1", "bn1", "relu1"}}, "native default",
      {{"conv1", "bn1"}, {"bn1"}, {"relu1"}});
  add({"", "host", "", {"reshape"}, 0, {}, {}}, "", {{"flatten"}});
  add({"p1", "openvino", "default", {"exp", "tanh", "exp", "tanh", "exp"}, 15, {}, {"e1", "t2", "e3", "t4", "e5"}}, "",
      {{"e1"}, {"t2"}, {"e3"}, {"t4"}, {"e5"}});
  add({"p2", "native", "default", {"nn.softmax"}, 5, {}, {"prob"}}, "", {{"prob"}});
  report.operators.back().pinned = true;
  report.operators[0].rejections = {{"openblas", "gemm", "crashed"}};
  report.operators[2].rejections = {{"openblas", "gemm", "crashed"}};
  return report;
}

TEST(ReportTest, ByDefaultEachPartitionIsALineWithItsNodes) {
  const CompileReport report = OfAModel();
  EXPECT_EQ(ExplanationText(report, ExplanationDetail::kPartitions).substr(PlanTable(report).size()),
            "partitions, with their share of the time of all kernels:\n"
            "  dnnl       direct                       20.0 us  50.0%  conv1, bn1, relu1 (3 nodes); runner-up native default (+2.5 us)\n"
            "  openvino   default                      15.0 us  37.5%  e1, t2, ..., e5 (5 nodes); no other backend could\n"
            "  native     default                       5.0 us  12.5%  prob; pinned\n"
            "  without a kernel: flatten\n"
            "  refused: openblas gemm: crashed; for conv1, bn1, relu1 (3 nodes)\n");
}

TEST(ReportTest, OperatorsAreNamedByTheirNodes) {
  const CompileReport report = OfAModel();
  const std::string text = ExplanationText(report, ExplanationDetail::kOperators).substr(PlanTable(report).size());
  EXPECT_EQ(text.substr(0, text.find("  e1")),
            "operators:\n"
            "  conv1, bn1               nn.conv2d            dnnl direct  20.0 us (with 2 others: p0); runner-up native default (+2.5 us)\n"
            "             refused: openblas gemm: crashed\n"
            "  bn1                      nn.bias_add          dnnl direct  20.0 us (with 2 others: p0); runner-up native default (+2.5 us)\n"
            "  relu1                    nn.relu              dnnl direct  20.0 us (with 2 others: p0); runner-up native default (+2.5 us)\n"
            "             refused: openblas gemm: crashed\n"
            "  flatten                  reshape              host\n");
}

TEST(ReportTest, NodesReadBackAndFilesOfBeforeDoWithout) {
  const std::string text = ToJson(OfAModel());
  const CompileReport read = ReportFromJson(text).value();
  EXPECT_EQ(ToJson(read), text);
  EXPECT_EQ(read.plan[0].nodes, (std::vector<std::string>{"conv1", "bn1", "relu1"}));
  EXPECT_EQ(read.operators[0].nodes, (std::vector<std::string>{"conv1", "bn1"}));
  std::string before;
  for (size_t at = 0; at < text.size();) {  // without every "nodes": [...]
    const size_t key = text.find("\"nodes\": [", at);
    before += text.substr(at, key == std::string::npos ? key : key - at);
    at = key == std::string::npos ? text.size() : text.find(',', text.find(']', key)) + 1;
  }
  const Result<CompileReport> old = ReportFromJson(before);
  ASSERT_TRUE(old.has_value()) << old.error().message;
  EXPECT_THAT(ExplanationText(*old, ExplanationDetail::kPartitions),
              testing::HasSubstr("%0 (nn.conv2d), %1 (nn.bias_add), %2 (nn.relu) (3 nodes); runner-up"));
}

}  // namespace
}  // namespace collage
