#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collage/cost/cost.h"

namespace collage {

/// What is known of a function for a backend before it has run.
struct KernelWork {
  size_t backend = 0;  ///< or any number for kernels that are like no others of theirs
  /// Its heavy operators, those that others are fused to: one number each that equal operators share, sorted.
  std::vector<uint64_t> heavy;
  double bytes = 0;  ///< of its inputs and outputs
  Cost roofline;     ///< proved: no kernel of this work takes less
};

struct BoundAssumptions {
  /// Bytes a second, low: what a kernel touches more than another explains no more time than this.
  double slow_bytes_per_second = 5e10;
  /// How much dearer than in the best layout a kernel can be known to be from one of its relatives.
  double most_by_layout = 1.5;
  /// How much less a region of several heavy operators may take, relative to their cheapest prices apart, than regions of its backend did.
  double region_share = 0.8;
  /// How many times faster than the fastest one a kernel without heavy operators may read and write.
  double rate_factor = 1.5;
  /// Before so many of a kind have run, nothing is assumed of the others.
  size_t least_known = 4;
  /// Kernels that touch less say nothing of how fast memory is.
  double least_bytes = 65536;
};

/// How far assumptions are trusted.
struct Trust {
  double share = 1;  ///< of what is assumed that counts
  Cost stake;        ///< what is assumed counts whole where it is less, and less by no more than leaves this
};
inline constexpr Trust kNoTrust{0, {}};

/// Lower bounds of the prices of kernels that have not run. The roofline is proved. Three more are assumptions, drawn from the prices of
/// those that have run:
///
/// * Around the same heavy operators and in the same layouts, the best kernels of one backend differ by no more than the memory they touch:
///   what a library fuses behind a convolution does not make it cheaper, and is not cheaper apart.
/// * A region of several heavy operators is, relative to the cheapest prices of these apart, not much cheaper than the regions of its
///   backend that have run, all together.
/// * A kernel without heavy operators does not read and write much faster than the fastest that has run.
class PriceBounds {
 public:
  explicit PriceBounds(const BoundAssumptions& assumptions = {}) : assumptions_(assumptions) {}

  /// From now on assumptions count so far. Gives what was before.
  Trust SetTrust(const Trust& trust) { return std::exchange(trust_, trust); }
  /// Functions and variants are numbered from zero. `layouts` tells whether variants have the same ones.
  size_t AddFunction(KernelWork work);
  size_t AddVariant(size_t function, std::string layouts);
  /// The price that counts now, and that of the kernel alone; Unknown where it has not run. Invalid ones say nothing of others. Beside
  /// prices that are of a whole program, those of kernels alone say nothing of their relatives: these would be of a whole program too.
  void SetPrice(size_t variant, Cost now, Cost alone, bool is_in_context = false);

  [[nodiscard]] Cost Bound(size_t variant) const;
  [[nodiscard]] Cost Roofline(size_t variant) const { return functions_[variants_[variant].function].work.roofline; }
  /// Variants whose price would tell more of this one's: those of a relative of which some have run, in its layouts.
  [[nodiscard]] std::vector<size_t> Telling(size_t variant) const;

 private:
  struct Function {
    KernelWork work;
    std::vector<size_t> variants;
  };
  struct KernelVariant {
    size_t function;
    std::string layouts;
    Cost now = Cost::Unknown();
    Cost alone = Cost::Unknown();
    bool is_in_context = false;
  };
  struct Sums {
    double seconds = 0;
    double seconds_apart = 0;
    size_t count = 0;
  };
  using ByOperator = std::unordered_map<uint64_t, Cost>;

  void Refresh() const;
  void FindCheapestApart() const;
  void FindRegions() const;
  void FindRate() const;
  [[nodiscard]] Cost FamilyBound(size_t variant) const;
  [[nodiscard]] Cost CheapestInContext(const Function& relative, const std::string& layouts) const;
  [[nodiscard]] Cost BoundFrom(const Function& relative, const std::string& layouts) const;
  [[nodiscard]] Cost RegionBound(const KernelWork& work) const;
  [[nodiscard]] Cost RateBound(const KernelWork& work) const;
  [[nodiscard]] Cost CheapestAlone(const Function& function) const;
  [[nodiscard]] static Cost Sum(const ByOperator& cheapest, const std::vector<uint64_t>& heavy);

  BoundAssumptions assumptions_;
  Trust trust_;
  std::vector<Function> functions_;
  std::vector<KernelVariant> variants_;
  std::map<std::pair<size_t, std::vector<uint64_t>>, std::vector<size_t>> families_;  // functions by backend and heavy operators

  // Follows from the prices.
  mutable bool is_fresh_ = false;
  mutable ByOperator apart_now_;  // the cheapest function of one heavy operator
  mutable ByOperator apart_alone_;
  mutable std::unordered_map<size_t, Sums> regions_;  // by backend
  mutable double rate_ = 0;                           // bytes a second; zero: not known
  mutable std::vector<Cost> assumed_;                 // by variant
};

}  // namespace collage
