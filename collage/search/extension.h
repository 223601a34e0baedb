#pragma once

#include <vector>

#include "collage/search/frontier.h"

namespace collage {

/// The tensors open after a candidate was added to a covered set, ascending.
std::vector<size_t> OpenAfter(const SearchTables& tables, const std::vector<size_t>& open_before, const SearchCandidate& candidate,
                              const Covered& after);

/// What adding one candidate does to the tensors of every state of a covered set: which of them it reads, makes and closes is
/// found once, so that each of the many states costs only a few words of work.
class Extension {
 public:
  struct Scratch {
    std::vector<Frontier::TensorState> work;
    std::vector<Frontier::TensorState> result;  ///< one for each tensor open after
  };

  Extension(const SearchTables& tables, size_t candidate, const Frontier& from, const Frontier& to);

  /// Price of the conversions that a variant makes necessary; the tensors of the state that follows are left in scratch.result.
  Cost Apply(size_t variant, const Frontier::TensorState* before, Scratch& scratch) const;

 private:
  Cost Demand(Frontier::TensorState& state, size_t tensor, size_t layout) const;
  Cost Produce(Frontier::TensorState& state, size_t tensor, size_t layout) const;

  const SearchTables& tables_;
  const SearchCandidate& candidate_;
  const std::vector<SearchTables::Variant>& variants_;
  size_t before_count_;
  std::vector<size_t> touched_;  // tensors by slot: those open before, then those that appear
  std::vector<size_t> input_slots_;
  std::vector<size_t> output_slots_;
  std::vector<size_t> unlisted_slots_;  // made inside, in plain layout for want of a word
  std::vector<size_t> result_slots_;
};

}  // namespace collage
