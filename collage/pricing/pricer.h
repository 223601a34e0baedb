#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collage/backend/backend.h"
#include "collage/cache/cache.h"
#include "collage/fleet/fleet.h"
#include "collage/measure/kernel_timer.h"
#include "collage/measure/measure_kernel.h"

namespace collage {

struct PricerCounts {
  size_t measured = 0;   ///< variants compiled and timed for this process
  size_t elsewhere = 0;  ///< of these, by the fleet
  size_t cached = 0;     ///< variants whose price was in the cache
  size_t rejected = 0;   ///< variants that could not be compiled or run, or were found wrong
};

/// What is to be priced: a function as a backend makes a kernel of it.
struct PricedKernel {
  const Expr& function;
  const Backend& backend;
  const Variant& variant;
  const Device& device;
  std::optional<InputRanges> inputs = {};  ///< that suit the function, where such are known
};

/// And under which key its price is kept.
struct KeyedKernel {
  const MeasurementKey& key;
  PricedKernel kernel;
};

/// The error of what would have to be measured where that is not allowed.
Error NotInCache(const std::string& what);

/// Where a tensor lies, and how.
struct TensorPlace {
  Layout layout;
  std::shared_ptr<DeviceContext> context = {};  ///< null: the host
};

/// Prices one variant of a function at a time by compiling and timing it, once: the cache answers for what any process has
/// priced. Not for use by several threads: what runs beside a measurement spoils it.
class Pricer {
 public:
  /// Kernels are timed by `timer`, which must outlive it, or in this process where that is null.
  Pricer(Device device, MeasurementCache& cache, MeasureOptions options, KernelTimer* timer = nullptr)
      : device_(device), cache_(cache), options_(options), timer_(timer ? timer : &in_process_) {}
  Pricer(const Pricer&) = delete;
  Pricer& operator=(const Pricer&) = delete;

  [[nodiscard]] MeasurementKey KeyOf(uint64_t function_hash, const std::string& backend, const std::string& backend_version,
                                     const std::string& variant) const;
  /// Of what is no kernel's: what it is about, and where it holds.
  [[nodiscard]] MeasurementKey KeyOf(Fact fact, uint64_t about, uint64_t context = 0) const;
  /// From now on nothing is measured: a price that is not in the cache is an error which says of what.
  void AllowOnlyCached() { only_cached_ = true; }
  [[nodiscard]] bool allows_only_cached() const { return only_cached_; }
  /// Whether that error has occurred.
  [[nodiscard]] bool has_missed() const { return has_missed_; }
  /// The price if it is in the cache.
  Result<std::optional<Measurement>> Find(const MeasurementKey& key);
  /// Compiles and times; the outcome, Invalid included, goes into the cache. Errors only when the cache fails, or when only cached prices
  /// are allowed.
  Result<Measurement> Measure(const MeasurementKey& key, const PricedKernel& kernel);
  /// From now on kernels are timed by a fleet as far as it can, which must outlive this, and keys are those of its kind of machine.
  void UseFleet(Fleet* fleet) {
    fleet_ = fleet;
    fingerprint_ = fleet->fingerprint();
  }
  /// How many kernels may well be asked for at once: those of one request to MeasureEach.
  Result<size_t> AtOnce();
  [[nodiscard]] bool has_fleet() const { return fleet_ != nullptr; }
  /// As Measure, all at the same time where there is a fleet, else as KernelTimer::MeasureEach. Once `stop` says so nothing more is begun,
  /// and those have no price.
  Result<std::vector<std::optional<Measurement>>> MeasureEach(std::span<const KeyedKernel> kernels, const std::function<bool()>& stop = {});
  /// Times bringing a tensor into another layout, onto another device, or both, as a kernel of this process; into the cache.
  Result<Measurement> MeasureConversion(const TensorType& type, const TensorPlace& from, const TensorPlace& to);
  [[nodiscard]] MeasurementKey KeyOfConversion(const TensorType& type, const TensorPlace& from, const TensorPlace& to) const;
  /// Compiles and times without telling the cache: for comparing two kernels under the same conditions.
  Result<Measurement> MeasureAgain(const PricedKernel& kernel);
  /// How far a kernel is from the reference executor; an error is why it could not be compared.
  Result<double> Difference(const PricedKernel& kernel);
  /// What the kernel took inside a whole program, `context` being the hash of that: seconds of each round, and as anchors for each round
  /// the anchor's seconds and its number.
  Result<std::optional<Measurement>> FindInContext(const MeasurementKey& key, uint64_t context);
  Status StoreInContext(const MeasurementKey& key, uint64_t context, const Measurement& measurement);
  /// A kernel that was found to be wrong costs Invalid from now on. An error where its device does not work any more (KernelTimer), as of
  /// all that time kernels: then nothing is held against it.
  Status MarkInvalid(const KeyedKernel& kernel, const std::string& reason);

  [[nodiscard]] const PricerCounts& counts() const { return counts_; }
  [[nodiscard]] MeasurementCache& cache() { return cache_; }
  /// The host.
  [[nodiscard]] const Device& device() const { return device_; }
  /// Whether caches are evicted before each sample.
  [[nodiscard]] double patience_seconds() const { return options_.patience_seconds; }
  [[nodiscard]] bool evicts() const { return options_.eviction_bytes > 0; }

 private:
  tl::unexpected<Error> Missed(const std::string& what);
  void Count(const MeasurementKey& key, const Measurement& measurement);
  /// Of what was measured here.
  Status Keep(const KeyedKernel& kernel, const Measurement& measurement);
  [[nodiscard]] KernelJob JobOf(const PricedKernel& kernel) const {
    return {kernel.function, &kernel.backend, kernel.variant, kernel.device, options_, kernel.inputs};
  }

  Device device_;
  MeasurementCache& cache_;
  MeasureOptions options_;
  InProcessTimer in_process_;
  KernelTimer* timer_;
  Fleet* fleet_ = nullptr;
  bool only_cached_ = false;
  bool has_missed_ = false;
  PricerCounts counts_;
  std::string fingerprint_ = Fingerprint(device_);
};

}  // namespace collage
