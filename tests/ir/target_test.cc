#include "collage/ir/target.h"

#include <gtest/gtest.h>

namespace collage {
namespace {

TEST(Target, RoundTrips) {
  for (const char* text : {"cpu", "cpu -compiler=dnnl", "cuda -compiler=cudnn -host=cpu", "opencl -libs=clblast"}) {
    EXPECT_EQ(Target::Parse(text)->ToString(), text);
  }
  EXPECT_EQ(Target::Parse("cpu")->CompilerName(), "native");
  EXPECT_EQ(Target::Parse("cpu -compiler=dnnl")->CompilerName(), "dnnl");
}

TEST(Target, ErrorsNameTheWord) {
  const auto message = [](const char* text) { return Target::Parse(text).error().message; };
  EXPECT_NE(message("").find("is empty"), std::string::npos);
  EXPECT_NE(message("tpu").find("'tpu'"), std::string::npos);
  EXPECT_NE(message("cpu dnnl").find("'dnnl'"), std::string::npos);
  EXPECT_NE(message("cpu -compilr=dnnl").find("'-compilr'"), std::string::npos);
  EXPECT_NE(message("cpu -compiler=").find("no value"), std::string::npos);
  EXPECT_NE(message("cpu -compiler=a -compiler=b").find("twice"), std::string::npos);
}

TEST(Target, RefinesAddsACompilerAndAgreesOtherwise) {
  const auto refines = [](const char* a, const char* b) { return Refines(*Target::Parse(a), *Target::Parse(b)); };
  EXPECT_TRUE(refines("cpu -compiler=dnnl", "cpu"));
  EXPECT_TRUE(refines("cuda -host=cpu -partition_rule=r", "cuda -host=cpu"));
  EXPECT_FALSE(refines("cpu", "cpu"));
  EXPECT_FALSE(refines("cuda -compiler=cudnn", "cpu"));
  EXPECT_FALSE(refines("cpu -compiler=dnnl", "cpu -compiler=openvino"));
  EXPECT_FALSE(refines("cuda -compiler=cudnn", "cuda -host=cpu"));
}

}  // namespace
}  // namespace collage
