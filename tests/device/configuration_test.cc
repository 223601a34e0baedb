#include "collage/device/configuration.h"

#include <gtest/gtest.h>

namespace collage {
namespace {

ListedDevice Listed(DeviceKind type, int64_t id, std::vector<std::string> targets) {
  ListedDevice device{type, id, {}};
  for (const std::string& target : targets) device.targets.push_back(*Target::Parse(target));
  return device;
}

using Devices = std::vector<ListedDevice>;
const ListedDevice kCpu0 = Listed(DeviceKind::kCpu, 0, {"cpu"});
const ListedDevice kCpu2 = Listed(DeviceKind::kCpu, 2, {"cpu"});
const ListedDevice kCuda0 = Listed(DeviceKind::kCuda, 0, {"cuda"});
const ListedDevice kCuda1 = Listed(DeviceKind::kCuda, 1, {"cuda"});

Result<std::string> HostAndDefault(Devices devices, std::optional<VirtualDevice> host = {}, std::optional<VirtualDevice> given = {}) {
  const DeviceConfiguration configuration = COLLAGE_TRY(DeviceConfiguration::Create(std::move(devices), std::move(host), std::move(given)));
  return configuration.host().ToString() + " " + configuration.default_device().ToString();
}

VirtualDevice Device(const char* text) { return *VirtualDevice::Parse(text); }

TEST(DeviceConfiguration, TheHostIsGivenOrOfATargetOrTheLowestCpuOrAdded) {
  EXPECT_EQ(HostAndDefault({kCpu2, kCpu0, kCuda0}, Device("cpu:2")), "cpu:2 cpu:0");
  EXPECT_EQ(HostAndDefault({kCpu0, kCpu2, Listed(DeviceKind::kCuda, 0, {"cuda -host=cpu:2"})}), "cpu:2 cpu:0");
  EXPECT_EQ(HostAndDefault({kCuda0, kCpu2, kCpu0}), "cpu:0 cpu:0");
  EXPECT_EQ(HostAndDefault({kCuda1}), "cpu:0 cuda:1");
}

TEST(DeviceConfiguration, TheDefaultIsGivenOrTheOnlyDeviceOrTheLowestCpu) {
  EXPECT_EQ(HostAndDefault({kCpu0, kCuda1}, {}, Device("cuda@global")), "cpu:0 cuda:1@global");
  EXPECT_EQ(HostAndDefault({kCuda0, kCpu2}), "cpu:2 cpu:2");
  EXPECT_FALSE(HostAndDefault({kCuda0, kCuda1}));
  EXPECT_FALSE(HostAndDefault({}));
}

TEST(DeviceConfiguration, WhatContradictsItselfIsAnError) {
  EXPECT_FALSE(HostAndDefault({kCpu0, kCpu0}));
  EXPECT_FALSE(HostAndDefault({kCpu0}, Device("cuda:0")));
  EXPECT_FALSE(HostAndDefault({kCpu0}, Device("cpu:0@global")));
  EXPECT_FALSE(HostAndDefault({kCpu0}, {}, Device("cuda:0")));
  EXPECT_FALSE(HostAndDefault({kCpu0}, {}, Device("@global")));
  EXPECT_FALSE(HostAndDefault({Listed(DeviceKind::kCpu, 0, {})}));
  EXPECT_FALSE(HostAndDefault({Listed(DeviceKind::kCpu, 0, {"cuda"})}));
  EXPECT_FALSE(HostAndDefault({Listed(DeviceKind::kCpu, 0, {"cpu -compiler=a", "cpu"})}));
  EXPECT_FALSE(HostAndDefault({Listed(DeviceKind::kCpu, 0, {"cpu -host=cpu:0"}), Listed(DeviceKind::kCuda, 0, {"cuda -host=cpu:1"})}));
}

TEST(DeviceConfiguration, ATargetThatOneDeviceAloneHasStatesThatDevice) {
  const DeviceConfiguration configuration =
      *DeviceConfiguration::Create({kCpu0, kCuda0, Listed(DeviceKind::kCuda, 3, {"cuda", "cuda -compiler=cudnn"})}, {}, {});
  EXPECT_EQ(configuration.Resolve(Device("cuda -compiler=cudnn")).ToString(), "cuda:3 -compiler=cudnn");
  EXPECT_EQ(configuration.Resolve(Device("cuda:0 -compiler=cudnn")).ToString(), "cuda:0 -compiler=cudnn");
  EXPECT_EQ(configuration.Resolve(Device("cuda")).ToString(), "cuda");
}

}  // namespace
}  // namespace collage
