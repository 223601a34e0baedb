#pragma once

// Machines of one fingerprint that take different times: another clock, less memory bandwidth, a limit that somebody has set.

#include <array>
#include <string>

#include "collage/cache/cache_database.h"
#include "collage/cost/statistics.h"
#include "collage/support/result.h"

namespace collage {

/// What fixed pieces of work take on a machine, seconds: intervals of the median at the declared confidence, on one thread, since compiles
/// and workers may use different numbers of them.
struct Calibration {
  static constexpr std::array<const char*, 2> kWorks = {"arithmetic", "memory"};
  std::array<Interval, kWorks.size()> seconds;
};
/// Measures it, for half a second.
Calibration Calibrate();

/// Whether the machines cannot be told apart: the intervals of each work meet, or are no further apart than what nobody would call another
/// machine.
bool Agree(const Calibration& a, const Calibration& b);

/// Tables of machines, as statements that make them where they are missing.
extern const char* const kMachineTables;

/// The fingerprint under which the prices of a machine are kept: its own where it agrees with the first machine of that fingerprint that
/// the database has seen, or where it is the first; else that with "#2" behind, of all that agree with the first one which did not; and so
/// on. In a database a machine keeps its calibration for ever, so the answer changes only with the machine.
Result<std::string> MachineType(CacheDatabase& database, const std::string& fingerprint, const Calibration& calibration);

}  // namespace collage
