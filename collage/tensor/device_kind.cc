#include "collage/tensor/device_kind.h"

#include <array>

namespace collage {
namespace {

constexpr std::array<DeviceKind, 3> kKinds = {DeviceKind::kCpu, DeviceKind::kCuda, DeviceKind::kOpenCl};

}  // namespace

std::string_view Name(DeviceKind kind) {
  constexpr std::array<std::string_view, 3> kNames = {"cpu", "cuda", "opencl"};
  return kNames[static_cast<size_t>(kind)];
}

std::optional<DeviceKind> DeviceKindFromName(std::string_view name) {
  for (const DeviceKind kind : kKinds) {
    if (Name(kind) == name) return kind;
  }
  return std::nullopt;
}

}  // namespace collage
