#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collage/decide/decide.h"
#include "collage/driver/placement.h"

namespace collage {

/// What a cover needs of a device's own memory, as far as that is known before it is built: constants of its kernels, which stay there, and
/// the tensors that live at the worst moment. Workspaces are known to built kernels only.
struct DeviceNeed {
  /// A tensor with its views, or the constants of a call.
  struct Item {
    size_t bytes;
    std::vector<TensorSource> tensors;  ///< none: constants
    PostDfsIndex call = 0;              ///< of constants
  };
  size_t bytes = 0;
  std::vector<Item> items;
};
/// One for each of the placement's devices; of CPUs, whose memory is the host's, nothing.
std::vector<DeviceNeed> NeedsOf(const Placement& placement, const std::vector<SearchChoice>& choices);

/// Whether the devices have that memory.
bool FitsMemory(const Placement& placement, const std::vector<SearchChoice>& choices);

/// A cover that does not fit; or that was built, and a device refused it memory although it seemed to fit.
struct Misfit {
  std::vector<SearchChoice> choices;
  bool was_refused = false;
};
/// The placement without what makes the cover too large: where a device has too little, enough of what it would hold at the worst moment is
/// kept off it, the smallest that is enough, or the largest and so on. Of a cover that was refused, its need is more than the device has
/// from now on. Each call keeps more off, and what is left at last is nothing on the device.
PlacementPointer KeepOff(const Placement& placement, const Misfit& misfit);
/// What is kept off, in words, a line a device; empty: nothing.
std::vector<std::string> DescribeKeptOff(const Placement& placement);

/// How often the devices have refused memory so far.
size_t RefusalsOf(const Placement& placement);

/// An error where one of the devices does nothing for this process any more (DeviceContext::Check).
Status CheckDevices(const Placement& placement);

/// Decides until the best cover fits: what one that does not has too much of is kept off. `decide` decides about a placement; where a cover
/// that it wanted to time did not fit, `misfit` says which. Errors of `decide`; and where nothing fits, with the memory that is missing.
Result<Decision> DecideWithinMemory(PlacementPointer placement, const std::function<Result<Decision>(const PlacementPointer&)>& decide,
                                    const std::function<std::optional<Misfit>()>& misfit);

}  // namespace collage
