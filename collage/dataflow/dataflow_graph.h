#pragma once

// The index-addressed view of one function. Everything after it (patterns, rules, search, rewriting) speaks of expressions by
// their PostDfsIndex: sets of them are bit vectors, and i < j means that j cannot influence i.

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collage/dataflow/ancestor_tree.h"
#include "collage/ir/expr.h"
#include "collage/support/index_set.h"

namespace collage {

/// Index of an expression in a post-order walk of a function.
using PostDfsIndex = size_t;

/// Every distinct expression of a function is one node, the function itself the last. Two things are no nodes: operators (they
/// are names, not values), and what lies inside a Primitive or Composite function literal, which is one operator already.
///
/// Data flows from a let's value into its variable and from there to the uses, so that joining a value with its use across
/// the binding is seen to leave and come back. A function literal takes its body as input, an if its condition and branches.
class DataflowGraph {
 public:
  static constexpr PostDfsIndex kNone = static_cast<PostDfsIndex>(-1);

  struct Node {
    Expr expr;
    /// Distinct, in the order of first use by the expression.
    std::vector<PostDfsIndex> inputs;
    /// Distinct, ascending.
    std::vector<PostDfsIndex> outputs;
    /// The operator that it calls, or null: as CalledOp(expr) answers, without looking at the expression.
    const OpDef* op = nullptr;
    /// Basic block: the innermost function literal body or if branch that holds all uses. Block 0 is the function's own body.
    size_t block = 0;
    /// The nearest node through which every path from here to the function's result goes; kNone for the function itself.
    PostDfsIndex dominator_parent = kNone;
    /// Length of the longest path from any source; paths only lead upwards.
    size_t level = 0;
    /// The result of the function, or without any use.
    bool external = false;
    /// Written where it is used, never an input of a sub-graph: a simple scalar or a function literal.
    bool inlined = false;
    /// The fusion kind: an operator's own, tuple for tuples and projections, elementwise for constants and variables, else opaque.
    OpKind kind = OpKind::kOpaque;
  };

  /// Where a text binds an expression: in the body of a function (part 0) or a branch of an if (part 0 or 1).
  struct Place {
    const ExprNode* expr;
    const ExprNode* owner;
    size_t part;
  };

  /// `function` must be a Function expression. Linear in its size (times a logarithm for the dominators), without recursion.
  explicit DataflowGraph(Expr function) : DataflowGraph(std::move(function), {}) {}
  /// An expression with a place is not moved from there into the block of its uses: whoever reads the text takes the braces as they
  /// stand. Without places blocks follow from uses alone, since sharing has none.
  DataflowGraph(Expr function, const std::vector<Place>& places);

  [[nodiscard]] const Expr& function() const { return nodes_.back().expr; }
  [[nodiscard]] size_t size() const { return nodes_.size(); }
  [[nodiscard]] const Node& operator[](PostDfsIndex index) const { return nodes_[index]; }
  /// kNone for an expression that is no node.
  [[nodiscard]] PostDfsIndex Find(const Expr& expr) const;
  /// For an expression that is known to be a node.
  [[nodiscard]] PostDfsIndex IndexOf(const Expr& expr) const;

  /// True when what is computed in block `outer` can be used in block `inner`.
  [[nodiscard]] bool BlockEncloses(size_t outer, size_t inner) const { return blocks_.IsAncestor(outer, inner); }
  [[nodiscard]] size_t BlockCount() const { return blocks_.size(); }
  /// The block of the body of a function literal that is a node and not atomic.
  [[nodiscard]] size_t BodyBlock(PostDfsIndex function) const { return body_block_.at(function); }

 private:
  void IndexExpressions(const Expr& function);
  void DescribeNodes();
  void ConnectNodes();
  void AssignBlocks(const std::vector<Place>& places);
  void FindDominators();

  std::vector<Node> nodes_;
  std::unordered_map<const ExprNode*, PostDfsIndex> index_;
  AncestorTree blocks_;
  std::unordered_map<PostDfsIndex, size_t> body_block_;
};

/// True for a function literal with "Primitive" or "Composite": one operator of a backend, never looked into.
bool IsAtomicFunction(const Expr& expr);

/// The sub-expressions of a node that are nodes themselves, in the order of evaluation (a let: value, variable, body).
std::vector<const Expr*> NodeChildren(const Expr& expr);

}  // namespace collage
