#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "collage/cost/pricer.h"
#include "collage/search/lazy.h"
#include "collage/search/price_bounds.h"
#include "collage/search/problem.h"

namespace collage {

/// A backend in the declared order.
struct PricedBackend {
  const Backend* backend;
  std::string version;
  BackendRules::Style style;
};

/// What no device of this kind can exceed; bounds of unmeasured kernels come from it, so it must not be too low.
struct DeviceLimits {
  double flops_per_second;
  double bytes_per_second;
};
/// Generous limits of a CPU with 512-bit registers, two fused multiply-adds a cycle at 5 GHz for each thread, and a factor of four for
/// the multiplications that fast convolution algorithms save (Lavin and Gray, "Fast Algorithms for Convolutional Neural
/// Networks", 2016, F(4x4, 3x3)).
DeviceLimits LimitsOf(const Device& device);

/// Prices of the candidates of one function. Equal functions share their prices. What is in the cache is known from the start;
/// the rest is bounded by the roofline of its work and by what is assumed of it (PriceBounds).
class CandidatePrices : public VariantPrices {
 public:
  /// `candidates` must outlive it; their variants are filled in here.
  static Result<CandidatePrices> Create(std::vector<PricedCandidate>& candidates, const std::vector<PricedBackend>& backends,
                                        Pricer& pricer, const Progress& progress);

  [[nodiscard]] Cost PriceOrBound(size_t candidate, size_t variant) const override;
  [[nodiscard]] bool IsPriced(size_t candidate, size_t variant) const override;
  Status Price(size_t candidate, size_t variant) override;

  /// What a kernel took inside a whole program in one round of runs. The median of all rounds is from now on the price of every equal
  /// kernel, and is kept under the context that LoadInContext named.
  Status AddInContext(size_t candidate, size_t variant, double seconds);
  /// Reads what is kept under `context`, the hash of the model.
  Status LoadInContext(uint64_t context);
  [[nodiscard]] size_t RoundsInContext(size_t candidate, size_t variant) const;
  [[nodiscard]] Cost CostInContext(size_t candidate, size_t variant) const;
  /// From now on, what is assumed of the prices of what is not measured counts so far. Gives what was before.
  Trust SetTrust(const Trust& trust) { return bounds_.SetTrust(trust); }
  /// The lower bound that does not depend on any price; Invalid where that is known.
  [[nodiscard]] Cost Roofline(size_t candidate, size_t variant) const;
  /// Whether variants that were never part of a whole program count as Invalid.
  void AllowOnlyKnownInContext(bool only) { only_known_in_context_ = only; }
  [[nodiscard]] bool allows_only_known_in_context() const { return only_known_in_context_; }
  /// How much slower than alone a kernel is taken to be that was never part of a whole program: at a trust of 1 as many times as the
  /// least slowed one of its backend and variant, at 0 as the least slowed one of its backend, between them on a logarithmic scale.
  void SetTrustInContextFactors(double trust);

  /// What it takes alone, the least that its samples allow; Unknown while that is not measured.
  [[nodiscard]] Cost CostAlone(size_t candidate, size_t variant) const { return slots_[slot_of_[candidate][variant]].cost; }
  /// A number that candidates share whose prices are the same.
  [[nodiscard]] size_t SlotOf(size_t candidate, size_t variant) const { return slot_of_[candidate][variant]; }
  /// Adds what a variant was tuned to, with its price alone, to every candidate that shares it, behind their other variants; gives those
  /// candidates. (What earlier compiles have tuned is there from the start.)
  Result<std::vector<size_t>> AddTuned(size_t candidate, size_t variant, Variant tuned, const Measurement& measurement);
  /// Changes when a variant is added by tuning; zero when there is none.
  [[nodiscard]] uint64_t TuningHash() const;

  /// Takes in what has been added behind the other candidates; what these are called stays as it was.
  Status AddLast(PricedCandidate& candidate);
  /// Makes a variant Invalid everywhere.
  Status MarkInvalid(size_t candidate, size_t variant, const std::string& reason);
  [[nodiscard]] const MeasurementKey& KeyOf(size_t candidate, size_t variant) const;
  /// Why a variant is Invalid; empty when it is not.
  [[nodiscard]] const std::string& InvalidReason(size_t candidate, size_t variant) const;
  /// Different (function, backend) pairs among the candidates.
  [[nodiscard]] size_t distinct() const { return distinct_; }
  /// How many of these had a variant measured, or found Invalid, by this object.
  [[nodiscard]] size_t measured() const { return measured_.size(); }
  /// Variants of these of which nothing but a lower bound is known.
  [[nodiscard]] size_t unpriced() const;
  /// Of these, the ones whose bound hangs on an assumption.
  [[nodiscard]] size_t assumed() const;

 private:
  struct Slot {
    MeasurementKey key;
    Variant variant;
    Cost cost = Cost::Unknown();  ///< alone, the least that its samples allow: what looks good is tried in context
    Measurement rounds_in_context;
    Cost in_context = Cost::Unknown();
    std::string invalid_reason;
    size_t candidate;     ///< one of those that share it
    size_t function = 0;  ///< number of its (function, backend) pair, as in the bounds
  };

  CandidatePrices(const std::vector<PricedCandidate>& candidates, const std::vector<PricedBackend>& backends, Pricer& pricer,
                  const Progress& progress)
      : candidates_(&candidates), backends_(&backends), pricer_(&pricer), progress_(&progress) {}
  Result<std::vector<size_t>> SlotsFor(const PricedCandidate& candidate, size_t position, uint64_t hash);
  void Give(PricedCandidate& candidate, const std::vector<size_t>& slots);
  Status MeasureSlot(size_t number);
  [[nodiscard]] Rival RivalOf(const Slot& slot) const;
  Status FindTuned(const PricedCandidate& candidate, size_t position, std::vector<size_t>& slots);
  size_t AddSlot(Slot slot);
  void SetPrice(Slot& slot, const Measurement& measurement);
  /// The price in context that the cache holds of it, if any.
  Status FindInContext(Slot& slot);
  void UpdateContextFactors();
  /// How many times slower than alone inside a whole program.
  /// Tells the bounds what is known now.
  void UpdateBounds();
  void UpdateBound(size_t slot);
  [[nodiscard]] double ContextFactor(const Slot& slot) const;
  [[nodiscard]] static bool IsPriced(const Slot& slot);
  [[nodiscard]] Cost PriceOf(const Slot& slot) const;

  const std::vector<PricedCandidate>* candidates_;
  const std::vector<PricedBackend>* backends_;
  Pricer* pricer_;
  const Progress* progress_;
  std::vector<Slot> slots_;
  PriceBounds bounds_;                        // its variants are numbered as the slots
  std::vector<std::vector<size_t>> slot_of_;  // [candidate][variant]
  size_t distinct_ = 0;
  size_t priced_now_ = 0;
  std::unordered_set<size_t> measured_;            // functions
  std::unordered_map<IndexSet, size_t> cheapest_;  // slot of those measured in this process, by the nodes inside
  uint64_t context_ = 0;
  bool only_known_in_context_ = false;
  // How many times slower than alone the least slowed kernel is inside a whole program.
  std::map<std::string, double> least_factor_of_backend_;
  std::map<std::pair<std::string, std::string>, double> least_factor_of_variant_;  // by backend and variant
  double trust_in_factors_ = 1;
};

}  // namespace collage
