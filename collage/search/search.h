#pragma once

// The search proper, without expressions, backends or clocks: numbered nodes, tensors between them, priced candidates.
//
// The layout of every tensor between partitions is chosen together with the cover. A price per candidate alone would either
// charge a chain of one library for conversions that it never makes, or forget those that a change of library needs; both
// mislead the search by more than most kernels differ. So a state knows in which layouts each open tensor exists, and a
// conversion is an edge with a price of its own, paid once a tensor and layout.

#include <compare>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collage/cost/cost.h"
#include "collage/support/index_set.h"
#include "collage/support/result.h"

namespace collage {

/// A priced way to run a candidate. Layouts are numbered by the problem; one entry for each input and output tensor.
struct SearchVariant {
  Cost cost;
  std::vector<size_t> input_layouts;
  std::vector<size_t> output_layouts;
};

struct SearchCandidate {
  IndexSet inside;              ///< nodes that it covers
  size_t backend = 0;           ///< position in the declared order
  std::vector<size_t> inputs;   ///< tensors read
  std::vector<size_t> outputs;  ///< tensors written that somebody outside reads
  std::vector<SearchVariant> variants;
  bool is_partition = true;  ///< false for what stays with the host: counts as no partition and pays no transition
};

struct SearchTensor {
  size_t producer = kOutside;     ///< node, or kOutside for an input of the function (there from the start, in layout 0)
  std::vector<size_t> consumers;  ///< nodes
  bool is_result = false;         ///< must exist in layout 0 at the end
  static constexpr size_t kOutside = static_cast<size_t>(-1);
  friend bool operator==(const SearchTensor&, const SearchTensor&) = default;
};

struct SearchProblem {
  size_t node_count = 0;     ///< nodes are numbered in dataflow order: a producer has a smaller number than its consumers
  size_t layout_count = 1;   ///< layout 0 is plain
  size_t backend_count = 0;  ///< backends are numbered in the declared order
  std::vector<SearchTensor> tensors;
  std::vector<SearchCandidate> candidates;
  /// Price of making a tensor in layout `to` from layout `from`; zero for equal layouts. Empty means zero.
  std::function<Cost(size_t tensor, size_t from, size_t to)> conversion;
  /// Price of running a partition of backend `to` right after one of backend `from`; [from][to]. Empty means zero.
  std::vector<std::vector<Cost>> transition;
};

struct SearchChoice {
  size_t candidate;
  size_t variant;
  friend auto operator<=>(const SearchChoice&, const SearchChoice&) = default;
};

struct SearchResult {
  Cost cost;                          ///< of kernels, conversions and transitions
  std::vector<SearchChoice> choices;  ///< in the order of their first nodes
  size_t partitions = 0;              ///< choices that are partitions
  Cost lower_bound;                   ///< equal to `cost` for an exact searcher
  size_t states_expanded = 0;
  bool is_proven = true;  ///< false where a limit ended the search: the optimum may be as low as `lower_bound`
};

/// A tensor brought from the layout in which it is produced into another one.
struct ConversionMade {
  size_t tensor;
  size_t from;
  size_t to;
};
/// The conversions that a cover needs: one for each tensor and layout in which somebody wants it and nobody makes it.
std::vector<ConversionMade> ConversionsOf(const SearchProblem& problem, const std::vector<SearchChoice>& choices);

/// The rules of the game, shared by all searchers (and by the brute force of the tests): price of a full cover, every
/// conversion being made from the layout in which the producer gives the tensor.
Cost PriceOfCover(const SearchProblem& problem, const std::vector<SearchChoice>& choices);

/// Which of two covers of the same nodes is preferred when price and number of partitions are equal: `less` for the first. Earlier
/// backends go first, then the lexicographically smaller list of inside sets, then earlier variants; what stays with the host
/// decides last.
std::strong_ordering ComparePreference(const SearchProblem& problem, const std::vector<SearchChoice>& a,
                                       const std::vector<SearchChoice>& b);

/// The same, and what decided.
struct Preference {
  enum class Reason { kBackends, kInsides, kVariants, kHost, kNone };
  Reason reason = Reason::kNone;  ///< kNone: the lists are the same
  std::strong_ordering order = std::strong_ordering::equal;
};
/// Of two covers that begin with other choices each, of the same nodes and in as many partitions, between which `before` is the preference.
Preference PreferenceOf(const SearchProblem& problem, std::span<const SearchChoice> a, std::span<const SearchChoice> b,
                        const Preference& before = {});

/// The choices along one cycle that remains when every chosen candidate is contracted to one node; empty when the cover is
/// acyclic.
std::vector<SearchChoice> FindCycle(const SearchProblem& problem, const std::vector<SearchChoice>& choices);

/// The cheapest acyclic exact cover by Dijkstra's algorithm over covered sets, the next candidate always containing the first
/// uncovered node. Equal prices fall to fewer partitions, then to earlier backends, then to the lexicographically smallest list
/// of inside sets, then to earlier variants. Errors name the first node that no valid candidate covers.
Result<SearchResult> SearchDijkstra(const SearchProblem& problem);

}  // namespace collage
