#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collage/cache/fact.h"
#include "collage/cost/measurement.h"
#include "collage/support/result.h"

namespace collage {

class CacheDatabase;

/// What a fact is about. Prices are shared between models, so nothing of the model is in their keys. A kind of fact uses the parts for
/// which its table has columns (fact.h).
struct MeasurementKey {
  uint64_t function_hash = 0;  ///< structural hash of the extracted function, constants by type only; or of what else it is about
  std::string backend;
  std::string backend_version;
  std::string variant;
  std::string device;  ///< Fingerprint(device)
  int threads = 1;
  uint64_t context = 0;  ///< of the model, the weights or the other plans, where the fact holds only there
  Fact fact = Fact::kKernel;

  friend bool operator==(const MeasurementKey&, const MeasurementKey&) = default;
};

/// Prices that outlive the process, in SQLite. Every store is a transaction of its own: a kill at any moment loses at most
/// the measurement in progress. Several processes may use one file.
class MeasurementCache {
 public:
  enum class Missing { kCreate, kFail };
  /// Creates the file where it is missing, or fails; an empty path is a cache in memory. A file with an older schema is migrated. A
  /// file that is no database, is damaged, is that of another program or of a newer version is an error that says so, and is left as
  /// it is.
  static Result<MeasurementCache> Open(const std::filesystem::path& path, Missing missing = Missing::kCreate);
  MeasurementCache(MeasurementCache&&) noexcept;
  MeasurementCache& operator=(MeasurementCache&&) noexcept;
  ~MeasurementCache();

  [[nodiscard]] Result<std::optional<Measurement>> Find(const MeasurementKey& key) const;
  Status Store(const MeasurementKey& key, const Measurement& measurement);
  /// Whether this kernel (Fact::kKernel) has been compared with the reference and agreed.
  [[nodiscard]] Result<bool> IsVerified(const MeasurementKey& key) const;
  Status StoreVerified(const MeasurementKey& key);

  /// For the maintenance of the file (cache_maintenance.h).
  [[nodiscard]] CacheDatabase& database() const { return *database_; }

 private:
  explicit MeasurementCache(std::unique_ptr<CacheDatabase> database);
  std::unique_ptr<CacheDatabase> database_;
};

}  // namespace collage
