#pragma once

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collage/search/relaxation.h"
#include "collage/support/hash.h"

namespace collage {

/// What relaxed tensors that are open save or cost, by which of their consumers are covered. Many covered sets share that.
class OpenTensors {
 public:
  /// `relaxation` must outlive it and stay as it is.
  OpenTensors(const Relaxation& relaxation, const SearchTables& tables) : relaxation_(relaxation), tables_(tables) {}

  /// One tensor beside covered sets that have the same of its consumers, and its producer or not.
  class Tensor {
   public:
    Tensor(const Relaxation& relaxation, const SearchTables& tables, size_t tensor, const Covered& covered);

    /// In this state, whatever follows.
    [[nodiscard]] Picoseconds Least(Frontier::TensorState state);
    /// In the cheapest.
    [[nodiscard]] Picoseconds LeastOfAny() const { return least_of_any_; }

   private:
    const Relaxation& relaxation_;
    size_t tensor_;
    Covered covered_;                 // one of these sets
    std::optional<TensorSide> side_;  // where it is made
    Picoseconds least_of_any_;
    std::vector<std::pair<Frontier::TensorState, Picoseconds>> known_;
  };
  /// Stays where it is.
  Tensor& Of(size_t tensor, const Covered& covered);

 private:
  struct Key {
    size_t tensor;
    bool is_made;
    IndexSet outside;  // positions among the consumers

    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return HashCombine(key.outside.Hash(), 2 * key.tensor + (key.is_made ? 1 : 0)); }
  };

  const Relaxation& relaxation_;
  const SearchTables& tables_;
  std::unordered_map<Key, Tensor, KeyHash> known_;
};

/// What the states of one frontier cost in the end at least: so far, the rest by a relaxation, and what the layouts in which its open
/// tensors exist save or cost beside what the relaxation has promised them.
class FrontierBound {
 public:
  /// Both must outlive it, and `relaxation` stay as it is. `set` is the frontier's covered set in the relaxation's graph.
  FrontierBound(const Relaxation& relaxation, OpenTensors& tensors, const Frontier& frontier, size_t set);

  [[nodiscard]] size_t set() const { return set_; }
  /// The least that a cover costs that begins with a state.
  [[nodiscard]] Cost Least(const Frontier& frontier, const Frontier::State& state);
  /// A bound of this for states of which only the price and the backend that ran last are known.
  [[nodiscard]] Cost LeastOfAny(Cost cost, uint32_t last_backend) const;
  /// The same, whatever ran last.
  [[nodiscard]] Cost LeastOfAny(Cost cost) const;

 private:
  const Relaxation& relaxation_;
  size_t set_;
  std::vector<OpenTensors::Tensor*> open_;
  Picoseconds least_of_any_ = 0;
};

}  // namespace collage
