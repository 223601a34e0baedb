#pragma once

// What people do with a cache: look at it, carry it to another machine, thin it out, check it.

#include <cstddef>
#include <functional>
#include <istream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collage/cache/cache.h"
#include "collage/cache/cache_entry.h"
#include "collage/support/result.h"

namespace collage {

struct CacheStatistics {
  int schema = 0;
  size_t bytes = 0;  ///< on the disk
  size_t entries = 0;
  size_t invalid = 0;
  size_t verified = 0;
  size_t samples = 0;
  std::map<std::string, size_t> by_backend;  ///< kernels: "dnnl 2.6.3"
  std::map<std::string, size_t> by_fact;     ///< all other tables: "race"
  std::map<std::string, size_t> by_device;   ///< fingerprint
  std::map<int64_t, size_t> by_threads;
  std::map<int64_t, size_t> by_protocol;
};
Result<CacheStatistics> StatisticsOf(const MeasurementCache& cache);

/// Calls `visit` for each entry in the order of the keys, all of one moment. Ends at its first error. An entry that CheckEntry refuses is
/// an error.
Status ForEachEntry(const MeasurementCache& cache, const std::function<Status(const CacheEntry&)>& visit);

struct ImportCounts {
  size_t added = 0;
  size_t replaced = 0;
  size_t kept = 0;  ///< were there already, and stay as they were
};
/// Reads lines of ToJsonLine; all of them go into the cache, or at the first error ("line 7: field ...") none. Where an entry of the same
/// key exists, it stays, unless `replace`.
Result<ImportCounts> ImportEntries(MeasurementCache& cache, std::istream& lines, bool replace);

/// Which entries to remove: those to which everything that is set applies.
struct PruneFilter {
  std::optional<std::string> backend;
  std::optional<std::string> backend_version;
  /// Stored before this time, in seconds since 1970-01-01 00:00 UTC. Entries of unknown time are older than any other.
  std::optional<int64_t> stored_before;
  bool invalid = false;
  /// Not of the device with this fingerprint, nor of another machine that has it (fleet/machine_type.h).
  std::optional<std::string> not_of_device;
};
/// Gives how many entries it removed, or would remove where `dry_run`; then the space is given back.
Result<size_t> Prune(MeasurementCache& cache, const PruneFilter& filter, bool dry_run);

/// Everything that is wrong with a cache, a line each; empty: it is whole. Pages and indices of a file by SQLite, then every entry. Errors
/// when it is not there, no database, or of another program or version. Changes nothing in it.
Result<std::vector<std::string>> ProblemsOf(const std::string& name);

}  // namespace collage
