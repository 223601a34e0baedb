#pragma once

#include <functional>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collage/dataflow/dataflow_graph.h"
#include "collage/pattern/rule.h"
#include "collage/support/hash.h"

namespace collage {

/// One way in which a pattern matches.
struct PatternMatch {
  Match match;
  /// Nodes that the pattern speaks of; what a wildcard matches stays outside.
  IndexSet inside;
};

/// Enumerates every way in which patterns match the expressions of one graph: each alternative, optional parts taken and left,
/// commutative operators either way round. Partial results are kept per pattern part and expression, so that overlapping
/// matches share their work and a pattern costs about the size of the graph; the graph must outlive the matcher.
class PatternMatcher {
 public:
  explicit PatternMatcher(const DataflowGraph& graph) : graph_(graph) {}

  /// All matches with this root, without duplicates.
  std::vector<PatternMatch> Matches(const Pattern& pattern, PostDfsIndex root);
  /// Their insides.
  std::vector<IndexSet> MatchedSets(const Pattern& pattern, PostDfsIndex root);

 private:
  struct Partial {
    IndexSet inside;
    std::map<std::string, Expr> captures;
    friend bool operator==(const Partial&, const Partial&) = default;
  };
  using Partials = std::vector<Partial>;
  /// An expression and its index, so that it need be neither looked up nor, mostly, looked at. kNone: it is no node.
  struct Subject {
    const Expr* expr;
    PostDfsIndex index;
  };
  using Pairs = std::vector<std::pair<const Pattern*, Subject>>;

  [[nodiscard]] Subject SubjectOf(const Expr& expr) const { return {&expr, graph_.Find(expr)}; }
  [[nodiscard]] Subject SubjectAt(PostDfsIndex index) const { return {&graph_[index].expr, index}; }
  [[nodiscard]] Subject Argument(const Subject& call, size_t position) const;
  [[nodiscard]] const OpDef* OpOf(const Subject& subject) const;

  const Partials& Match(const Pattern& pattern, const Subject& subject);
  Partials MatchRoot(const Pattern& pattern, PostDfsIndex root);
  /// As Match, not kept.
  Partials MatchOnce(const PatternNode& node, const Subject& subject);
  Partials Compute(const PatternNode& node, const Subject& subject);
  Partials MatchCall(const PatternNode& node, const Subject& subject);
  Partials MatchInOrder(const Pairs& pairs);
  /// Whether the pattern is one that needs no search, and if so what remains of `partials` with it.
  bool MatchLeaf(const PatternNode& node, const Subject& subject, Partials& partials) const;
  Partials MatchBranches(const PatternNode& node, const Subject& subject);
  Partials MatchDominator(const PatternNode& node, const Subject& child);
  /// Adds to each of `partials` what `path` matches between `parent` and `child`, where the child dominates the parent, all that lies
  /// between matches, and nothing else that is computed flows in; otherwise nothing is left.
  Partials MatchBetween(const Pattern& path, PostDfsIndex parent, PostDfsIndex child, Partials partials);
  /// Whether all computed operands of a node are among `sources`; parameters and constants are not computed.
  [[nodiscard]] bool OperandsComeFrom(PostDfsIndex node, const IndexSet& sources) const;
  /// Adds the node itself to each.
  static Partials WithSelf(Partials partials, const Subject& subject);

  const DataflowGraph& graph_;
  struct KeyHash {
    size_t operator()(const std::pair<const PatternNode*, const ExprNode*>& key) const {
      return HashCombine(reinterpret_cast<uintptr_t>(key.first), reinterpret_cast<uintptr_t>(key.second));
    }
  };
  std::unordered_map<std::pair<const PatternNode*, const ExprNode*>, Partials, KeyHash> memo_;
  std::vector<std::shared_ptr<const PatternNode>> alive_;  // keys of the memo
};

/// Calls `visit` with every match of the pattern anywhere in the graph that has an inside, roots ascending.
void ForEachMatch(const DataflowGraph& graph, const Pattern& pattern, const std::function<void(PatternMatch)>& visit);
/// The same, told the insides alone: for whoever does not look at the expressions.
void ForEachMatchedSet(const DataflowGraph& graph, const Pattern& pattern, const std::function<void(IndexSet)>& visit);

}  // namespace collage
