#pragma once

#include "collage/runtime/device.h"
#include "collage/support/progress.h"

namespace collage {

/// How far two equal turns on this machine are apart now: an A/A race of one workload on all threads, about a fifth of a second; gives the
/// 90th percentile over its rounds of |time of a turn / time of its twin - 1|. What differs by less cannot be told apart by one turn.
double MeasureNoiseFloor(const Device& device, const Progress& progress);

}  // namespace collage
