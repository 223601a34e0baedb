#pragma once

#include <cstdint>
#include <string>

#include "collage/cache/cache.h"
#include "collage/support/result.h"

namespace collage {

/// Rows of these names are no kernels: what a race of plans found and how fast the machine was then, how far a plan is from the reference
/// (zero when it is equal), how long was measured before a decision was final, how long trivial kernels take after those of other backends,
/// and what tuning chose for a kernel.
inline constexpr const char* kRaceBackend = "race of plans";
inline constexpr const char* kDriftBackend = "drift until the race";
inline constexpr const char* kDifferenceBackend = "difference of plan";
inline constexpr const char* kDecisionBackend = "decision";
inline constexpr const char* kTransitionBackend = "transition";
inline constexpr const char* kTuningBackend = "tuning";
[[nodiscard]] bool IsKernel(const MeasurementKey& key);

/// One row of a cache.
struct CacheEntry {
  MeasurementKey key;
  int64_t protocol = kMeasurementProtocol;
  Measurement measurement;
  bool verified = false;
  int64_t stored_at = 0;  ///< seconds since 1970-01-01 00:00 UTC; zero: not known
};

/// Errors name the field and say what is wrong: a key with an empty or malformed part, samples that are no finite positive seconds, or
/// neither samples nor a reason why there are none.
Status CheckEntry(const CacheEntry& entry);

/// One line of JSON without its end: all fields, named as the columns of the file, the hash as 16 hexadecimal digits. Bytes of the reason
/// that are no UTF-8 are replaced.
std::string ToJsonLine(const CacheEntry& entry);

/// Inverse of ToJsonLine. Errors name the field: missing, unknown, of the wrong type, or what CheckEntry says.
Result<CacheEntry> EntryFromJsonLine(const std::string& line);

}  // namespace collage
