#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "collage/backend/backend.h"
#include "collage/cost/cache.h"
#include "collage/cost/measurement.h"

namespace collage {

struct PricedVariant {
  Variant variant;
  Cost cost;
  std::string invalid_reason;  ///< set when `cost` is Invalid
  MeasurementKey key;
};

struct PricerCounts {
  size_t distinct = 0;  ///< different (function, backend) pairs asked for
  size_t measured = 0;  ///< variants compiled and timed in this process
  size_t cached = 0;    ///< variants whose price was in the cache
  size_t rejected = 0;  ///< variants that could not be compiled or run, or were found wrong
};

/// Prices functions by compiling and timing every variant of them, once each: equal functions (by structural hash) share a
/// price, in this process and, through the cache, in all. Not for use by several threads: what runs beside a measurement
/// spoils it.
class Pricer {
 public:
  Pricer(Device device, MeasurementCache& cache, MeasureOptions options) : device_(device), cache_(cache), options_(options) {}

  /// Prices of all variants of an extracted Primitive function whose structural hash (constants by type) is `hash`; empty when
  /// the backend has no way to run it. Errors only when the cache fails.
  Result<std::vector<PricedVariant>> Price(uint64_t hash, const Function& function, const Backend& backend,
                                           const std::string& backend_version);

  /// Price of bringing a tensor from one layout into another; zero for equal ones.
  Result<Cost> PriceConversion(const TensorType& type, const Layout& from, const Layout& to);

  /// A kernel that was found to be wrong costs Invalid from now on, in this process and in the cache.
  Status MarkInvalid(const MeasurementKey& key, const std::string& reason);

  [[nodiscard]] const PricerCounts& counts() const { return counts_; }
  [[nodiscard]] MeasurementCache& cache() { return cache_; }
  [[nodiscard]] const Device& device() const { return device_; }

 private:
  Result<Measurement> MeasureVariant(const MeasurementKey& key, const Function& function, const Backend& backend, const Variant& variant);

  Device device_;
  MeasurementCache& cache_;
  MeasureOptions options_;
  PricerCounts counts_;
  std::string fingerprint_ = Fingerprint(device_);
  std::unordered_map<std::string, std::vector<PricedVariant>> priced_;
  std::unordered_map<std::string, Cost> conversions_;
};

}  // namespace collage
