#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collage/search/covered.h"
#include "collage/search/search.h"

namespace collage {

/// The covered sets that candidates can reach, the next candidate always containing the first uncovered node. It depends on no price, so
/// one serves all searches of a problem.
class CoverGraph {
 public:
  struct Edge {
    uint32_t to;
    uint32_t candidate;
  };

  /// Nothing where there are more covered sets than that.
  static std::optional<CoverGraph> Build(const SearchProblem& problem, size_t most_covered);

  /// Covered sets are numbered so that edges lead to larger numbers; 0 is the empty one.
  [[nodiscard]] size_t size() const { return covered_.size(); }
  [[nodiscard]] const Covered& at(size_t set) const { return covered_[set]; }
  [[nodiscard]] std::span<const Edge> EdgesOf(size_t set) const {
    return {edges_.data() + first_edge_[set], edges_.data() + first_edge_[set + 1]};
  }

 private:
  std::vector<Covered> covered_;
  std::vector<size_t> first_edge_;
  std::vector<Edge> edges_;
};

/// The cover graph of one problem, built when it is first needed. Searches that see the problem at different prices share it, and that
/// one of them needed it: sweeps of the others without bounds would mostly end in vain, too.
class SharedCoverGraph {
 public:
  [[nodiscard]] bool IsNeeded() const { return is_needed_; }
  /// Null where there are more covered sets than that. Problems may differ in prices alone.
  const CoverGraph* Of(const SearchProblem& problem, size_t most_covered);

 private:
  bool is_needed_ = false;
  std::optional<CoverGraph> graph_;
};

}  // namespace collage
