#pragma once

#include "collage/runtime/device.h"
#include "collage/support/progress.h"

namespace collage {

/// How far two equal things are apart when they are timed like all others on this machine now: an A/A race of one workload on all threads,
/// about a fifth of a second; PairedNoise of it, as a share. Prices that differ by less cannot be told apart.
double MeasureNoiseFloor(const Device& device, const Progress& progress);

}  // namespace collage
