#include "collage/explain/what_if_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collage {
namespace {

using testing::HasSubstr;

/// Two operators in a row; "library" takes each for 10 us and both for 15, "native" each for 12.
RecordedProblem Two() {
  RecordedProblem recorded;
  SearchProblem& problem = recorded.problem;
  problem.node_count = 2;
  problem.backend_count = 2;
  problem.tensors = {{0, {1}, false}, {1, {}, true}, {SearchTensor::kOutside, {0}, false}};
  const auto add = [&](const std::vector<size_t>& inside, size_t backend, double price) {
    problem.candidates.push_back({IndexSet(inside),
                                  backend,
                                  {inside.front() == 0 ? size_t{2} : size_t{0}},
                                  {inside.back()},
                                  {{Cost::Microseconds(price), {0}, {0}}}});
    recorded.bounds.push_back({Cost::Microseconds(price)});
    recorded.variants.push_back({backend == 0 ? "direct" : "tiled"});
  };
  add({0}, 0, 10);
  add({1}, 0, 10);
  add({0, 1}, 0, 15);
  add({0}, 1, 12);
  add({1}, 1, 12);
  recorded.backends = {"library", "native"};
  recorded.nodes = {"%0", "result"};
  recorded.operators = {"nn.conv2d", "nn.relu"};
  recorded.chosen = {{2, 0}};
  return recorded;
}

TEST(WhatIfReportTest, MetadataCarriesReportAndPrices) {
  CompileReport report;
  report.model = "net.onnx";
  const std::string metadata = ToMetadata(report, Two());
  EXPECT_EQ(ReportOfMetadata(metadata).value(), ToJson(report));
  EXPECT_EQ(ReportFromJson(metadata)->model, "net.onnx");
  EXPECT_EQ(ToJson(RecordedOfMetadata(metadata).value()), ToJson(Two()));
  EXPECT_THAT(RecordedOfMetadata(ToJson(report)).error().message, HasSubstr("compile the model again"));
  for (const char* text : {"", "[]", "{"}) {
    EXPECT_FALSE(RecordedOfMetadata(text).has_value()) << text;
    EXPECT_FALSE(ReportOfMetadata(text).has_value()) << text;
  }
}

TEST(WhatIfReportTest, TextAndJsonNameWhatChangesHands) {
  const WhatIf question{.pin = {"%0=native"}};
  const WhatIfAnswer answer = Answer(Two(), question).value();
  const std::string text = WhatIfText(Two(), question, answer, ExplanationDetail::kPartitions);
  EXPECT_THAT(text, HasSubstr("+7.0 us"));
  EXPECT_THAT(text, HasSubstr("--pin %0=native"));
  EXPECT_THAT(text, HasSubstr("library direct 15.0 us for 2 operators  ->  native tiled 12.0 us"));
  const std::string json = WhatIfJson(Two(), question, answer);
  EXPECT_THAT(json, HasSubstr("\"difference_us\": 7"));
  EXPECT_THAT(json, HasSubstr("\"after\": \"native tiled\""));
  EXPECT_THAT(WhatIfText(Two(), {}, Answer(Two(), {}).value(), ExplanationDetail::kPartitions), HasSubstr("nothing changes hands"));
}

TEST(WhatIfReportTest, APlanOfTheRaceIsMentionedWithItsPrice) {
  RecordedProblem recorded = Two();
  recorded.chosen = {{3, 0}, {4, 0}};
  EXPECT_THAT(WhatIfText(recorded, {}, Answer(recorded, {}).value(), ExplanationDetail::kPartitions), HasSubstr("own plan is 24.0 us"));
}

TEST(WhatIfReportTest, WhatLeavesOnePartitionForAnotherIsOneLine) {
  RecordedProblem recorded = Two();
  recorded.onnx_nodes = {{"conv1", "bn1"}, {"relu1"}};
  // "native" takes both together too, for 20 us.
  recorded.problem.candidates.push_back({IndexSet({0, 1}), 1, {2}, {1}, {{Cost::Microseconds(20), {0}, {0}}}});
  recorded.bounds.push_back({Cost::Microseconds(20)});
  recorded.variants.push_back({"fused"});
  const WhatIf question{.forbid = {"library:bn1"}, .pin = {"relu1=native"}};
  const WhatIfAnswer answer = Answer(recorded, question).value();
  EXPECT_EQ(WhatIfText(recorded, question, answer, ExplanationDetail::kPartitions),
            "before:      1 partitions         15.0 us\n"
            "after:       1 partitions         20.0 us  (+5.0 us, +33.3%)  under --forbid library:bn1 --pin relu1=native\n"
            "what changes hands:\n"
            "  conv1, bn1, relu1 (3 nodes)      library direct 15.0 us for 2 operators  ->  native fused 20.0 us for 2 operators\n");
  EXPECT_THAT(
      WhatIfText(recorded, question, answer, ExplanationDetail::kOperators),
      HasSubstr("what changes hands:\n"
                "  conv1, bn1 (nn.conv2d)           library direct 15.0 us for 2 operators  ->  native fused 20.0 us for 2 operators\n"
                "  relu1 (nn.relu)                  library direct 15.0 us for 2 operators  ->  native fused 20.0 us for 2 operators\n"));
  const std::string json = WhatIfJson(recorded, question, answer);
  EXPECT_THAT(json, HasSubstr("\"relu1\""));
}

}  // namespace
}  // namespace collage
