#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

namespace collage {

/// What the control groups of a process leave to it, as in a container. Nothing where no group says anything.
struct ControlGroupLimits {
  std::optional<size_t> memory;       // bytes
  std::optional<size_t> free_memory;  // bytes of it that are not used; what caches files and lies idle counts as free
  std::optional<double> processors;   // how many could work all of the time
};

/// Of this process: the least of its own groups and all above them. Versions 1 and 2, both as they are mounted below `root` (Linux,
/// admin-guide/cgroup-v2.rst, admin-guide/cgroup-v1/memory.rst, scheduler/sched-bwc.rst). What cannot be read limits nothing.
ControlGroupLimits ReadControlGroupLimits(const std::filesystem::path& root = "/");

}  // namespace collage
