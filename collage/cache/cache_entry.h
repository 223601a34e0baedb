#pragma once

#include <cstdint>
#include <string>

#include "collage/cache/cache.h"
#include "collage/support/result.h"

namespace collage {

/// One row of a cache.
struct CacheEntry {
  MeasurementKey key;
  int64_t protocol = kMeasurementProtocol;
  Measurement measurement;
  bool verified = false;
  int64_t stored_at = 0;  ///< seconds since 1970-01-01 00:00 UTC; zero: not known
};

/// Errors name the field (as its table does) and say what is wrong: a key with an empty or malformed part, samples that are no finite
/// positive seconds, or neither samples nor a reason why there are none.
Status CheckEntry(const CacheEntry& entry);

/// One line of JSON without its end: the kind of fact, and all fields, named as the columns of its table, hashes as 16 hexadecimal digits.
/// Bytes of the reason that are no UTF-8 are replaced.
std::string ToJsonLine(const CacheEntry& entry);

/// Inverse of ToJsonLine; a line of a version before kinds of facts is a kernel's. Errors name the field: missing, unknown, of the wrong
/// type, or what CheckEntry says.
Result<CacheEntry> EntryFromJsonLine(const std::string& line);

}  // namespace collage
