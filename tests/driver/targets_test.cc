#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/driver/placement.h"

namespace collage {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> Competing(const std::vector<std::string>& targets) {
  const Result<std::vector<PlacementTarget>> resolved = ResolveTargets(targets, Device{DeviceKind::kCpu, 0, 1}, /*all_devices=*/false);
  std::vector<std::string> names;
  for (const PlacementTarget& target : resolved.value()) names.emplace_back(target.backend->Name());
  return names;
}

TEST(TargetsTest, SomeCompeteOnlyWhereATargetNamesThem) {
  EXPECT_THAT(Competing({}), Contains("reference"));
  EXPECT_THAT(Competing({}), Not(Contains("c")));
  EXPECT_THAT(Competing({"cpu"}), Not(Contains("c")));
  EXPECT_THAT(Competing({"cpu -compiler=c"}), Contains("c"));
}

TEST(TargetsTest, TheHostThatATargetStatesIsTheHost) {
  const auto resolve = [](const std::vector<std::string>& targets) { return ResolveTargets(targets, Device{DeviceKind::kCpu, 0, 1}); };
  for (const char* host : {"cpu", "cpu:0"}) {
    const Result<std::vector<PlacementTarget>> resolved = resolve({std::string("cpu -host=") + host, "cpu -host=cpu:0"});
    ASSERT_TRUE(resolved) << resolved.error().message;
    EXPECT_EQ(resolved->front().target, "cpu");
  }
  const auto error = [&](const std::vector<std::string>& targets) {
    const Result<std::vector<PlacementTarget>> resolved = resolve(targets);
    return resolved ? std::string("none") : resolved.error().message;
  };
  const std::string expected = ", expected cpu:0, the CPU that runs what is compiled";
  EXPECT_EQ(error({"cpu -host=gpu"}), "--target \"cpu -host=gpu\": -host=gpu is no device" + expected);
  for (const char* host : {"opencl:0", "opencl", "cpu:1", "cpu:0@global", ":0", "?"}) {
    const std::string target = std::string("cpu:0 -compiler=reference -host=") + host;
    EXPECT_EQ(error({target}), "--target \"" + target + "\": -host=" + host + " is not the host" + expected);
  }
  // Of two that differ one is not the host.
  EXPECT_THAT(error({"cpu -host=cpu:0", "opencl -host=cpu:1"}), HasSubstr("-host=cpu:1 is not the host"));
}

}  // namespace
}  // namespace collage
