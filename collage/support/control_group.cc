#include "collage/support/control_group.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace collage {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

template <class T>
std::optional<T> ReadNumber(const fs::path& path) {
  std::ifstream file(path);
  T number = 0;
  return file >> number ? std::optional(number) : std::nullopt;  // "max" is none
}

/// Of a line such as "inactive_file 4096".
std::optional<size_t> ReadNamed(const fs::path& path, const std::string& wanted) {
  std::ifstream file(path);
  size_t number = 0;
  for (std::string name; file >> name >> number;) {
    if (name == wanted) return number;
  }
  return std::nullopt;
}

/// Names of the files that say one thing, which differ between the versions.
struct MemoryFiles {
  const char* limit;
  const char* used;
  const char* idle;
};
constexpr MemoryFiles kMemoryFiles1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr MemoryFiles kMemoryFiles2 = {"memory.max", "memory.current", "inactive_file"};

template <class T>
void Lower(std::optional<T>& limit, T value) {
  limit = limit ? std::min(*limit, value) : value;
}

void LowerMemory(const fs::path& group, const MemoryFiles& files, ControlGroupLimits& limits) {
  const std::optional<size_t> limit = ReadNumber<size_t>(group / files.limit);
  if (!limit) return;
  Lower(limits.memory, *limit);
  const size_t used = ReadNumber<size_t>(group / files.used).value_or(0);
  const size_t idle = std::min(used, ReadNamed(group / "memory.stat", files.idle).value_or(0));
  Lower(limits.free_memory, *limit - std::min(*limit, used - idle));
}

void LowerProcessors(std::optional<double> quota, std::optional<double> period, ControlGroupLimits& limits) {
  if (quota && period && *quota > 0 && *period > 0) Lower(limits.processors, *quota / *period);
}

void LowerToGroup(const fs::path& group, ControlGroupLimits& limits) {
  LowerMemory(group, kMemoryFiles1, limits);
  LowerMemory(group, kMemoryFiles2, limits);
  LowerProcessors(ReadNumber<double>(group / "cpu.cfs_quota_us"), ReadNumber<double>(group / "cpu.cfs_period_us"), limits);
  std::ifstream both(group / "cpu.max");
  double quota = 0;
  double period = 0;
  if (both >> quota >> period) LowerProcessors(quota, period, limits);
}

/// A hierarchy as this process sees it: a line of proc/self/mountinfo.
struct Mount {
  fs::path shown;  // the group that is seen there
  fs::path at;
  std::string type;
  std::vector<std::string> options;
};

std::vector<Mount> ReadMounts(const fs::path& root) {
  std::vector<Mount> mounts;
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> before = Split(line.substr(0, dash), ' ');
    const std::vector<std::string> behind = Split(line.substr(dash + 3), ' ');
    if (before.size() < 5 || behind.size() < 3 || !behind[0].starts_with("cgroup")) continue;
    mounts.push_back({before[3], root / fs::path(before[4]).relative_path(), behind[0], Split(behind[2], ',')});
  }
  return mounts;
}

/// `controllers` are those of a line of proc/self/cgroup; version 2 names none there.
bool IsOf(const Mount& mount, const std::vector<std::string>& controllers) {
  if (controllers.empty()) return mount.type == "cgroup2";
  const auto has = [&](const std::string& controller) { return std::ranges::find(mount.options, controller) != mount.options.end(); };
  return mount.type == "cgroup" && std::ranges::all_of(controllers, has);
}

/// Where a group lies below the one that a mount shows. A container often sees no more than its own.
fs::path Below(const fs::path& group, const fs::path& shown) {
  const fs::path below = group.lexically_relative(shown);
  return below.empty() || *below.begin() == ".." ? fs::path() : below;
}

}  // namespace

ControlGroupLimits ReadControlGroupLimits(const fs::path& root) {
  ControlGroupLimits limits;
  const std::vector<Mount> mounts = ReadMounts(root);
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::vector<std::string> controllers = Split(line.substr(first + 1, second - first - 1), ',');
    for (const Mount& mount : mounts) {
      if (!IsOf(mount, controllers)) continue;
      fs::path group = mount.at;
      LowerToGroup(group, limits);
      for (const fs::path& part : Below(line.substr(second + 1), mount.shown)) LowerToGroup(group /= part, limits);
    }
  }
  return limits;
}

}  // namespace collage
