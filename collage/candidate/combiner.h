#pragma once

#include <functional>
#include <vector>

#include "collage/dataflow/sub_graph.h"

namespace collage {

/// A simple way of joining sub-graphs.
struct Combiner {
  enum class Kind {
    kByKind,           ///< touching, the upstream one of kind at most `up`, the downstream one at most `down`
    kTupleArgument,    ///< a consumer, its tuple argument, and one producer for every field
    kTupleProjection,  ///< a sub-graph and a projection of a tuple that it gives
    kConstant,         ///< a sub-graph and a constant that it takes
    kAny,              ///< touching
    kSiblings,         ///< side by side: a shared input that is no constant, and no path from one to the other
  };
  Kind kind = Kind::kAny;
  OpKind up = OpKind::kOpaque;
  OpKind down = OpKind::kOpaque;

  static Combiner ByKind(OpKind up, OpKind down) { return {Kind::kByKind, up, down}; }
  static Combiner TupleArgument() { return {Kind::kTupleArgument}; }
  static Combiner TupleProjection() { return {Kind::kTupleProjection}; }
  static Combiner Constant() { return {Kind::kConstant}; }
  static Combiner Any() { return {Kind::kAny}; }
  static Combiner Siblings() { return {Kind::kSiblings}; }
};

/// Operator fusion: out-elementwise-fusable -> broadcast, broadcast -> comm-reduce, injective -> injective, and tuples.
std::vector<Combiner> NativeCombiners();

/// What is not grown any further. Zero is no limit.
struct CombineLimits {
  size_t max_depth = 0;
  size_t max_operators = 0;
  size_t max_exits = 0;
  /// Keep what is not convex or not in one basic block too, for a rule further out to weed out.
  bool keep_invalid = false;
  /// Sub-graphs with one last node, smallest first: the guard against bushes, whose sub-trees are exponentially many.
  size_t max_per_last_node = 0;
};

/// The seeds and everything that joining makes of them, again and again: any two that a combiner accepts are joined, old or
/// new. Unless told otherwise only convex sub-graphs in one basic block are kept, which loses none of the final ones: a convex sub-graph
/// can be built from convex parts, taking its sources away one by one.
std::vector<SubGraph> CombineClosure(const DataflowGraph& graph, const std::vector<SubGraph>& seeds, const std::vector<Combiner>& combiners,
                                     const CombineLimits& limits);
/// The same, each as soon as it is known.
void CombineClosure(const DataflowGraph& graph, const std::vector<SubGraph>& seeds, const std::vector<Combiner>& combiners,
                    const CombineLimits& limits, const std::function<void(SubGraph)>& visit);

}  // namespace collage
