#pragma once

#include <optional>
#include <string_view>

namespace collage {

/// What a device is, as the text form of targets and places calls it: cpu, cuda, opencl.
enum class DeviceKind { kCpu, kCuda, kOpenCl };

std::string_view Name(DeviceKind kind);
std::optional<DeviceKind> DeviceKindFromName(std::string_view name);

}  // namespace collage
