#pragma once

namespace collage {

// Plans of the race that are no single backend's.

/// The searched plan where the same kernels could also run on several CPUs at the same time.
inline constexpr const char* kOneAfterAnother = "one after another";
/// That: independent branches on several CPUs.
inline constexpr const char* kSideBySide = "side by side";

}  // namespace collage
