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

/// Calls `visit` with the member that is this part: uint64_t, std::string, int, int64_t, std::vector<double> or bool.
template <class Entry, class Visit>
auto VisitPart(Entry& entry, EntryPart part, const Visit& visit) {
  switch (part) {
    case EntryPart::kHash:
      return visit(entry.key.function_hash);
    case EntryPart::kContext:
      return visit(entry.key.context);
    case EntryPart::kBackend:
      return visit(entry.key.backend);
    case EntryPart::kBackendVersion:
      return visit(entry.key.backend_version);
    case EntryPart::kVariant:
      return visit(entry.key.variant);
    case EntryPart::kDevice:
      return visit(entry.key.device);
    case EntryPart::kThreads:
      return visit(entry.key.threads);
    case EntryPart::kProtocol:
      return visit(entry.protocol);
    case EntryPart::kSamples:
      return visit(entry.measurement.samples);
    case EntryPart::kInvalidReason:
      return visit(entry.measurement.invalid_reason);
    case EntryPart::kAnchors:
      return visit(entry.measurement.anchors);
    case EntryPart::kVerified:
      return visit(entry.verified);
    case EntryPart::kStoredAt:
      break;
  }
  return visit(entry.stored_at);
}

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
