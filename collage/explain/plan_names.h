#pragma once

namespace collage {

// Plans of the race that are no single backend's.

inline constexpr const char* kSearchedPlan = "searched";
/// Of the reference kernels, where no other agrees with the reference executor.
inline constexpr const char* kPlanOfReference = "reference";

/// The searched plan where the same kernels could also run on several CPUs at the same time.
inline constexpr const char* kOneAfterAnother = "one after another";
/// That: independent branches on several CPUs.
inline constexpr const char* kSideBySide = "side by side";

/// Where fewer bits are permitted: the cheapest plan known that does not use that.
inline constexpr const char* kInFloat32 = "in float32";

/// Where the searched plan runs branches on shares of the team: the cheapest plan known that does not.
inline constexpr const char* kBranchesInTurn = "branches one after another";

}  // namespace collage
