#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collage/driver/placement.h"

namespace collage {

/// How much was known at some time of a kernel.
struct KnownOfKernel {
  bool alone = false;
  size_t rounds = 0;  ///< inside of programs
  friend bool operator==(const KnownOfKernel&, const KnownOfKernel&) = default;
};
/// Of kernels by their numbers; of others nothing was.
using KnownThen = std::unordered_map<size_t, KnownOfKernel>;
[[nodiscard]] KnownThen WhatIsKnown(const std::vector<Evidence>& evidence);

/// Between the cache and the evidence of a decision: rows are kept as they were taken.
class EvidenceStore {
 public:
  /// All three must outlive it. `context` is the hash of the program whose kernels are timed inside of it.
  EvidenceStore(Pricer& pricer, uint64_t context) : pricer_(&pricer), context_(context) {}

  /// What is known of every kernel; `known` of the first ones is taken as it is.
  Result<std::vector<Evidence>> Load(const Placement& placement, std::vector<Evidence> known = {}) const;
  /// From now on what is loaded is what was known then, as if nothing had been measured since; what has been found Invalid since is so.
  /// Nothing: all that there is.
  void LimitTo(std::optional<KnownThen> then) { then_ = std::move(then); }
  /// Adds a round inside a program to what is kept of a kernel.
  Status Add(const PlacedKernel& kernel, const ProgramRow& row);
  /// In this program the kernel is invalid, in others it may not be.
  Status Withdraw(const PlacedKernel& kernel, const std::string& reason);

 private:
  Result<Evidence> Find(const PlacedKernel& kernel) const;
  /// A verdict, on a kernel in a program.
  [[nodiscard]] MeasurementKey KeyOfWithdrawal(const PlacedKernel& kernel) const;

  Pricer* pricer_;
  uint64_t context_;
  std::optional<KnownThen> then_;
};

/// As evidence of time alone.
Evidence ToEvidence(const Measurement& measurement);

/// Anchors are numbered in a double of the cache, which holds whole numbers of so many bits.
inline constexpr uint64_t kAnchorNumbers = uint64_t{1} << 50;
/// Of this anchor, over all its rounds inside of programs; 0 where there was none.
double MedianAnchorSeconds(const std::vector<Evidence>& evidence, uint64_t anchor);

}  // namespace collage
