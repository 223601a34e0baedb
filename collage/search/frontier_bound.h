#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "collage/search/relaxation.h"

namespace collage {

/// What the states of one frontier cost in the end at least: so far, the rest by a relaxation, and what the layouts in which its open
/// tensors exist save or cost beside what the relaxation has promised them.
class FrontierBound {
 public:
  /// `relaxation` must outlive it and stay as it is. `set` is the frontier's covered set in the relaxation's graph.
  FrontierBound(const Relaxation& relaxation, const SearchTables& tables, const Frontier& frontier, size_t set);

  /// The least that a cover costs that begins with a state.
  [[nodiscard]] Cost Least(const Frontier& frontier, const Frontier::State& state);
  /// A bound of this for states of which only the price and the backend that ran last are known.
  [[nodiscard]] Cost LeastOfAny(Cost cost, uint32_t last_backend) const;
  /// The same, whatever ran last.
  [[nodiscard]] Cost LeastOfAny(Cost cost) const;

 private:
  struct OpenTensor {
    size_t tensor;
    std::optional<TensorSide> side;  ///< of a tensor that is made
    std::vector<std::pair<Frontier::TensorState, Picoseconds>> known;
  };
  Picoseconds LeastOf(OpenTensor& open, Frontier::TensorState state) const;

  const Relaxation& relaxation_;
  const Covered& covered_;
  size_t set_;
  std::vector<OpenTensor> open_;
  Picoseconds least_of_any_ = 0;
};

}  // namespace collage
