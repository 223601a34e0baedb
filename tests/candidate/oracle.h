#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "collage/candidate/combiner.h"

namespace collage {

/// The conditions of the specification over small graphs, tried on every subset of nodes. It looks at expressions only: edges,
/// kinds, exits and depths are found again here, from their definitions.
class Oracle {
 public:
  using Mask = uint64_t;
  using Sets = std::set<std::vector<size_t>>;

  explicit Oracle(const DataflowGraph& graph);

  [[nodiscard]] size_t size() const { return count_; }
  [[nodiscard]] Mask Where(const std::function<bool(const Expr&)>& holds) const;
  [[nodiscard]] Mask Calls() const;

  /// "no path leaves the inside and comes back"
  [[nodiscard]] bool IsConvex(Mask inside) const;
  /// Inside, with an output outside, or the function's result.
  [[nodiscard]] Mask Exits(Mask inside) const;
  /// "depth being the node count of the longest entry-to-exit path"
  [[nodiscard]] size_t Depth(Mask inside) const;
  /// "no exit feeds an inside node", broken
  [[nodiscard]] bool HasTaps(Mask inside) const;
  [[nodiscard]] size_t OperatorCount(Mask inside) const;
  /// "at most max_exits exits; depth at most max_depth; without allow_taps no exit feeds an inside node; convex"; what is about
  /// blocks and nesting holds for all sets here.
  [[nodiscard]] bool IsValid(Mask inside, const SubGraphConfig& config) const;

  /// The sets that are joined from the seeds: a set belongs to them when it is a seed, or convex and the union of smaller ones as
  /// one of the combiners says.
  [[nodiscard]] std::vector<Mask> Closure(const std::vector<Mask>& seeds, const std::vector<Combiner>& combiners,
                                          const CombineLimits& limits) const;

  /// No cycle once each of these disjoint sets is one node.
  [[nodiscard]] bool IsAcyclicWhenContracted(const std::vector<Mask>& sets) const;
  [[nodiscard]] bool Feeds(Mask from, Mask into) const;

  static std::vector<size_t> Members(Mask inside);
  static Sets ToSets(const std::vector<Mask>& masks);

 private:
  using Known = std::function<bool(Mask)>;
  [[nodiscard]] bool IsJoined(Mask inside, const Combiner& combiner, const Known& known) const;
  [[nodiscard]] bool JoinsTuple(Mask inside, size_t tuple, const Known& known) const;
  /// Whether `rest` is made of distinct producers, each known and giving a field, one for every field from `field` on.
  [[nodiscard]] bool HasProducers(const std::vector<size_t>& fields, size_t field, Mask rest, std::vector<Mask>& chosen,
                                  const Known& known) const;
  [[nodiscard]] OpKind KindOf(Mask inside) const;

  const DataflowGraph& graph_;
  size_t count_;
  std::vector<Mask> inputs_;
  std::vector<Mask> outputs_;
  std::vector<Mask> reached_;  // by any path, the node itself not
  Mask results_ = 0;
};

}  // namespace collage
