#pragma once

#include <cstdint>
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

/// Prices that outlive the process, in a file of SQLite or in PostgreSQL. Every store is a transaction of its own: a kill at any moment, of
/// whoever uses it or of a server, loses at most the measurement in progress. Several processes may use one.
class MeasurementCache {
 public:
  enum class Missing { kCreate, kFail };
  /// Opens the file of that name, or the database of the server where it is a URL (postgresql://user@host/database); an empty name is a
  /// cache in memory. What is missing is created, or an error: a file, or in a database the schema `collage`, beside which it may hold
  /// anything. An older schema is migrated. A file that is no database, is damaged, is that of another program or of a newer version is
  /// an error that says so, and is left as it is. So is a server that does not answer.
  static Result<MeasurementCache> Open(const std::string& name, Missing missing = Missing::kCreate);
  MeasurementCache(MeasurementCache&&) noexcept;
  MeasurementCache& operator=(MeasurementCache&&) noexcept;
  ~MeasurementCache();

  [[nodiscard]] Result<std::optional<Measurement>> Find(const MeasurementKey& key) const;
  Status Store(const MeasurementKey& key, const Measurement& measurement);
  /// Whether this kernel (Fact::kKernel) has been compared with the reference and agreed.
  [[nodiscard]] Result<bool> IsVerified(const MeasurementKey& key) const;
  Status StoreVerified(const MeasurementKey& key);

  /// For its maintenance (cache_maintenance.h).
  [[nodiscard]] CacheDatabase& database() const { return *database_; }

 private:
  explicit MeasurementCache(std::unique_ptr<CacheDatabase> database);
  std::unique_ptr<CacheDatabase> database_;
};

}  // namespace collage
