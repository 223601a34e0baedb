#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "collage/search/frontier.h"

namespace collage {

/// A function cut into stretches of nodes that few candidates leave: at a cut nothing beyond it is covered, so all that a stretch
/// needs to know of what came before are the states at its beginning. Networks repeat their blocks, and then the states repeat too
/// but for their total price, so a stretch that looks the same and is entered the same way has the same outcome.
///
/// A candidate may leave a stretch only from its first node and only to another cut, as the large pieces of a graph compiler do.
class Segments {
 public:
  explicit Segments(const SearchTables& tables);

  /// Where the stretch that begins at this node ends; zero when none begins there.
  [[nodiscard]] size_t EndOf(size_t begin) const { return end_of_[begin]; }
  /// The candidates that stay within, in the order of their first nodes.
  [[nodiscard]] std::vector<size_t> CandidatesWithin(size_t begin) const;

  /// Equal for stretches that differ in nothing that a search over them sees: candidates, prices, tensors, conversions, and the
  /// states in which they are entered, all prices relative to that of the first. 128 bits, so that chance plays no part.
  using Fingerprint = std::array<uint64_t, 2>;
  [[nodiscard]] Fingerprint FingerprintOf(size_t begin, const Frontier& from, const std::vector<Frontier::State>& entered) const;

 private:
  void FindCuts();

  const SearchTables& tables_;
  std::vector<size_t> end_of_;
};

/// What became of one stretch: the states at its end, and the choices that led to them.
struct SegmentOutcome {
  struct Step {
    Cost cost;           ///< beyond that of the first state entered
    int64_t partitions;  ///< beyond those of the first state entered
    int64_t parent;      ///< position among the steps; -1 - k for the k-th state entered
    uint32_t candidate;  ///< position among the candidates within
    uint32_t variant;
  };
  std::vector<Step> steps;  ///< parents first
  /// A step of its own each, and what else a state is.
  struct Last {
    Step step;
    uint32_t last_backend;
    std::vector<Frontier::TensorState> tensors;
  };
  std::vector<Last> last;
};

struct FingerprintHash {
  size_t operator()(const Segments::Fingerprint& fingerprint) const { return fingerprint[0]; }
};
using SegmentOutcomes = std::unordered_map<Segments::Fingerprint, SegmentOutcome, FingerprintHash>;

}  // namespace collage
