#include "collage/provider/options.h"

#include <gmock/gmock.h>

namespace collage::provider {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::map<std::string, std::string>& options) {
  const Result<ProviderOptions> read = ReadProviderOptions(options);
  return read ? "" : read.error().message;
}

TEST(ProviderOptionsTest, AreThoseOfACompileAndOfALoad) {
  const Result<ProviderOptions> options = ReadProviderOptions({{"cache", "/somewhere"},
                                                               {"prices", "prices.sqlite"},
                                                               {"budget", "2.5"},
                                                               {"threads", "2"},
                                                               {"targets", R"(["cpu", "cpu -compiler=dnnl"])"},
                                                               {"forbid", "openvino"},
                                                               {"eager", "true"},
                                                               {"shapes", R"([{"x": [1, 3]}, {"x": [2, 3]}])"}});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->programs, "/somewhere");
  EXPECT_EQ(options->budget, 2.5);
  EXPECT_EQ(options->load, R"({"threads":2})");
  EXPECT_EQ(options->compile, R"({"cache":"prices.sqlite","eager":true,"forbid":["openvino"],)"
                              R"("shapes":[{"x":[1,3]},{"x":[2,3]}],"targets":["cpu","cpu -compiler=dnnl"],"threads":2})");
  ASSERT_EQ(options->profiles.size(), 2U);
  EXPECT_EQ(options->profiles[1].at("x"), (Shape{2, 3}));
}

TEST(ProviderOptionsTest, AProgramDependsOnSomeOfThem) {
  const auto identity = [](const std::map<std::string, std::string>& options) { return ReadProviderOptions(options)->identity; };
  EXPECT_EQ(identity({{"budget", "3"}, {"cache", "a"}, {"prices", "b"}, {"cache_only", "1"}}), identity({}));
  EXPECT_NE(identity({{"threads", "1"}}), identity({{"threads", "2"}}));
  EXPECT_NE(identity({{"forbid", "dnnl"}}), identity({}));
  EXPECT_NE(identity({{"precision", "bf16"}}), identity({}));
  EXPECT_EQ(identity({{"targets", "cpu"}}), identity({{"targets", R"(["cpu"])"}}));
}

TEST(ProviderOptionsTest, AWrongOneIsAnError) {
  EXPECT_THAT(ErrorOf({{"bugdet", "3"}}), HasSubstr("unknown option 'bugdet'; there are 'budget', 'cache'"));
  EXPECT_EQ(ErrorOf({{"budget", "-1"}}), "option 'budget' is '-1', expected a number of seconds above zero");
  EXPECT_EQ(ErrorOf({{"threads", "2.5"}}), "option 'threads' is '2.5', expected a whole number from 1 to 1024");
  EXPECT_EQ(ErrorOf({{"eager", "perhaps"}}), "option 'eager' is 'perhaps', expected '1' or '0'");
  EXPECT_EQ(ErrorOf({{"pin", "[1]"}}), "option 'pin' is '[1]', expected one string, or a list of them as JSON");
  EXPECT_THAT(ErrorOf({{"shapes", R"({"x": "4x64"})"}}), HasSubstr("option 'shapes' is "));
  EXPECT_THAT(ErrorOf({{"shapes", R"([])"}}), HasSubstr("expected JSON as"));
  EXPECT_EQ(ErrorOf({{"prices", ""}}), "option 'prices' is '', expected something");
}

}  // namespace
}  // namespace collage::provider
