#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/driver/placement.h"

namespace collage {
namespace {

using ::testing::Contains;
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

}  // namespace
}  // namespace collage
