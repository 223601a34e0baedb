#pragma once

// The index-addressed view of one function. Everything after it (patterns, rules, search, rewriting) speaks of expressions by
// their PostDfsIndex: sets of them are bit vectors, and i < j means that j cannot influence i.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "collage/dataflow/ancestor_tree.h"
#include "collage/dataflow/expr_table.h"
#include "collage/dataflow/node_indices.h"
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

  /// What rules and searches ask about again and again, in one line of a cache: expressions lie scattered in memory, and looking at each
  /// costs more than all else once there are ten thousand.
  struct alignas(64) Node {
    Expr expr;
    /// Distinct, in the order of first use by the expression.
    NodeIndices inputs;
    /// Distinct, ascending.
    NodeIndices outputs;
    /// The operator that it calls, or null: as CalledOp(expr) answers, without looking at the expression.
    const OpDef* op = nullptr;
    /// The nearest node through which every path from here to the function's result goes; kNone for the function itself.
    PostDfsIndex dominator_parent = kNone;
    /// Basic block: the innermost function literal body or if branch that holds all uses. Block 0 is the function's own body.
    uint32_t block = 0;
    /// Length of the longest path from any source; paths only lead upwards.
    uint32_t level = 0;
    /// Arguments of a call; as many inputs, where it calls an operator, mean that each argument is an input of its own.
    uint32_t argument_count = 0;
    /// The fusion kind: an operator's own, tuple for tuples and projections, elementwise for constants and variables, else opaque.
    OpKind kind = OpKind::kOpaque;
    /// The result of the function, or without any use.
    bool external = false;
    /// Written where it is used, never an input of a sub-graph: a simple scalar or a function literal.
    bool inlined = false;
    /// Which of the ExprNode::Value the expression is.
    uint8_t form = 0;

    /// True for a call, a tuple, a constant..: as expr->As<T>() answers, without looking at the expression.
    template <class T>
    [[nodiscard]] bool Is() const {
      return form == FormOf<T>(static_cast<ExprNode::Value*>(nullptr));
    }

   private:
    template <class T, class... All>
    static constexpr uint8_t FormOf(std::variant<All...>*) {
      uint8_t position = 0;
      const bool found = ((std::is_same_v<T, All> || (++position, false)) || ...);
      static_assert((std::is_same_v<T, All> || ...));
      return found ? position : static_cast<uint8_t>(-1);
    }
  };

  /// Where a text binds an expression: in the body of a function (part 0) or a branch of an if (part 0 or 1).
  struct Place {
    const ExprNode* expr;
    const ExprNode* owner;
    size_t part;
  };

  /// `function` must be a Function expression. Linear in its size (times a logarithm for the dominators), without recursion.
  explicit DataflowGraph(const Expr& function) : DataflowGraph(function, {}) {}
  /// An expression with a place is not moved from there into the block of its uses: whoever reads the text takes the braces as they
  /// stand. Without places blocks follow from uses alone, since sharing has none.
  DataflowGraph(const Expr& function, const std::vector<Place>& places);

  [[nodiscard]] const Expr& function() const { return nodes_.back().expr; }
  [[nodiscard]] size_t size() const { return nodes_.size(); }
  [[nodiscard]] const Node& operator[](PostDfsIndex index) const { return nodes_[index]; }
  /// The calls of an operator, ascending.
  [[nodiscard]] const std::vector<uint32_t>& CallsOf(const std::string& op_name) const;
  /// kNone for an expression that is no node.
  [[nodiscard]] PostDfsIndex Find(const Expr& expr) const;
  /// For an expression that is known to be a node.
  [[nodiscard]] PostDfsIndex IndexOf(const Expr& expr) const;

  /// True when what is computed in block `outer` can be used in block `inner`.
  [[nodiscard]] bool BlockEncloses(size_t outer, size_t inner) const { return blocks_.IsAncestor(outer, inner); }
  [[nodiscard]] size_t BlockCount() const { return blocks_.size(); }
  /// The block of the body of a function literal that is a node and not atomic.
  [[nodiscard]] size_t BodyBlock(PostDfsIndex function) const { return body_block_.at(function); }
  /// Whose body (part 0) or branch (part 0 or 1) a block is.
  struct BlockOwner {
    PostDfsIndex node;
    size_t part;
  };
  [[nodiscard]] const BlockOwner& OwnerOf(size_t block) const { return block_owners_[block]; }
  /// The block of a branch of an if.
  [[nodiscard]] size_t BranchBlock(PostDfsIndex branch, size_t part) const { return then_block_.at(branch) + part; }
  /// The innermost block that holds both.
  [[nodiscard]] size_t CommonBlock(size_t a, size_t b) const { return blocks_.LowestCommonAncestor(a, b); }

 private:
  /// Of each node, the nodes that its expression is made of, one list behind the other.
  struct ChildLists {
    std::vector<uint32_t> begin;
    std::vector<uint32_t> nodes;
  };
  ChildLists IndexExpressions(const Expr& function);
  /// From numbers by discovery to those in post-order.
  ChildLists Renumber(std::vector<Node> found, std::vector<uint32_t> place, ChildLists children, const std::vector<uint32_t>& order);
  void ConnectNodes(const ChildLists& children);
  void AssignBlocks(const std::vector<Place>& places);
  void FindDominators();

  std::vector<Node> nodes_;
  std::shared_ptr<const uint32_t[]> edges_;
  std::unordered_map<std::string, std::vector<uint32_t>> calls_;  // by operator
  ExprTable index_;
  AncestorTree blocks_;
  std::unordered_map<PostDfsIndex, size_t> body_block_;
  std::unordered_map<PostDfsIndex, size_t> then_block_;
  std::vector<BlockOwner> block_owners_;
};

/// True for a function literal with "Primitive" or "Composite": one operator of a backend, never looked into.
bool IsAtomicFunction(const Expr& expr);

/// The sub-expressions of a node that are nodes themselves, in the order of evaluation (a let: value, variable, body).
std::vector<const Expr*> NodeChildren(const Expr& expr);

}  // namespace collage
