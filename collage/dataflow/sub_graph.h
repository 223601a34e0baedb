#pragma once

// A sub-graph is a set of nodes and what follows from it. Many thousands are in flight during a search, so a sub-graph is a
// small shared value and makes no expression: extraction (extraction.h) is for what must be priced, rewriting (rewrite.h) for
// the few that win.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collage/dataflow/dataflow_graph.h"

namespace collage {

/// Which validity rules apply. Zero is no limit.
struct SubGraphConfig {
  size_t max_exits = 0;
  size_t max_depth = 0;
  bool allow_taps = false;
};

/// The conditions of a valid sub-graph, numbered as in their tests.
enum class Violation {
  kMaxExits,    ///< 1. more exits than allowed
  kMaxDepth,    ///< 2. deeper than allowed
  kBasicBlock,  ///< 3. not all inside nodes are in one basic block, or an input belongs to a block inside it
  kNested,      ///< 4. nested sub-graphs are not pairwise disjoint subsets, or depend on each other in a cycle
  kTaps,        ///< 5. an exit also feeds an inside node
  kConvex,      ///< 6. a path leaves the inside and comes back
};
/// "max_exits", "max_depth", "basic_block", "nested", "taps", "convex".
std::string_view Name(Violation violation);

struct NestedSubGraph;

/// Attributes that many sub-graphs have in common: thousands of candidates become functions with the same few.
class SharedAttributes {
 public:
  SharedAttributes(Attributes attributes)  // NOLINT(google-explicit-constructor)
      : hashed_(std::make_shared<const Hashed>(std::move(attributes))) {}
  SharedAttributes(std::initializer_list<Attributes::Entry> entries = {}) : SharedAttributes(Attributes(entries)) {}

  operator const Attributes&() const { return hashed_->attributes; }  // NOLINT(google-explicit-constructor)
  [[nodiscard]] const AttributeValue* Find(std::string_view name) const { return hashed_->attributes.Find(name); }
  [[nodiscard]] bool Has(std::string_view name) const { return hashed_->attributes.Has(name); }
  [[nodiscard]] const std::vector<Attributes::Entry>& entries() const { return hashed_->attributes.entries(); }
  [[nodiscard]] uint64_t Hash() const { return hashed_->hash; }
  /// Of this one alone.
  void Set(std::string name, AttributeValue value) {
    Attributes changed = hashed_->attributes;
    changed.Set(std::move(name), std::move(value));
    *this = SharedAttributes(std::move(changed));
  }
  friend bool operator==(const SharedAttributes& a, const SharedAttributes& b) {
    return a.hashed_ == b.hashed_ || (a.Hash() == b.Hash() && a.hashed_->attributes == b.hashed_->attributes);
  }

 private:
  struct Hashed {
    explicit Hashed(Attributes given) : attributes(std::move(given)), hash(attributes.Hash()) {}
    Attributes attributes;
    uint64_t hash;
  };
  std::shared_ptr<const Hashed> hashed_;
};

/// Ascending PostDfsIndexes, half as large: what candidates hold is most of what a search holds.
using NodeList = std::span<const uint32_t>;

class SubGraph {
 public:
  SubGraph() = default;
  SubGraph(const SubGraph& other);
  SubGraph(SubGraph&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  SubGraph& operator=(SubGraph other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~SubGraph() {
    if (data_) Release();
  }

  /// Near-linear in the inside nodes and their edges. `inside` must not be empty and lie within the graph.
  SubGraph(const DataflowGraph& graph, IndexSet inside);
  SubGraph(const DataflowGraph& graph, IndexSet inside, std::vector<NestedSubGraph> nested);

  [[nodiscard]] const IndexSet& inside() const;
  /// Inside, with an input outside that is not inlined.
  [[nodiscard]] NodeList entry() const;
  /// Inside, with an output outside or external.
  [[nodiscard]] NodeList exit() const;
  /// Outside, with an output inside, and not inlined: what is bound to parameters (constants may be copied in their place).
  [[nodiscard]] NodeList input() const;
  /// Outside, with an input inside.
  [[nodiscard]] NodeList output() const;
  /// Nodes on the longest path from an entry to an exit; a node that no entry reaches adds nothing.
  [[nodiscard]] size_t depth() const;
  /// The largest fusion kind inside.
  [[nodiscard]] OpKind kind() const;
  /// Calls of operators inside.
  [[nodiscard]] size_t operator_count() const;
  /// Sub-graphs that become functions of their own when this one is extracted or rewritten.
  [[nodiscard]] std::span<const NestedSubGraph> nested() const;
  /// Names of the operators and composites in order, joined by "_": "nn_conv2d_add_nn_relu". Long ones are cut.
  [[nodiscard]] std::string Label(const DataflowGraph& graph) const;

  /// Every condition that is broken; empty when valid. Convexity costs about the size of the sub-graph (see .cc).
  [[nodiscard]] std::vector<Violation> Violations(const DataflowGraph& graph, const SubGraphConfig& config) const;
  [[nodiscard]] bool IsValid(const DataflowGraph& graph, const SubGraphConfig& config) const { return Violations(graph, config).empty(); }
  [[nodiscard]] bool IsConvex(const DataflowGraph& graph) const;
  [[nodiscard]] bool IsInOneBlock(const DataflowGraph& graph) const;
  [[nodiscard]] bool HasTaps(const DataflowGraph& graph) const;

  /// True when the two are disjoint and an exit of one feeds the other.
  [[nodiscard]] bool Touches(const SubGraph& other) const;
  /// Both together, nested ones side by side. They must be disjoint.
  [[nodiscard]] SubGraph DisjointUnion(const DataflowGraph& graph, const SubGraph& other) const;
  /// The same nodes, to become one function with these attributes.
  [[nodiscard]] SubGraph WithAttributes(const DataflowGraph& graph, Attributes attributes) const;
  [[nodiscard]] SubGraph Wrapped(SharedAttributes attributes) const;
  /// The same sub-graph over another graph; `image` gives the node of `to` for inside nodes of this one; those that it
  /// lacks are left out.
  [[nodiscard]] SubGraph Substitute(const DataflowGraph& to, const std::unordered_map<PostDfsIndex, PostDfsIndex>& image) const;

  /// Equal inside sets and equal nesting; all else follows.
  friend bool operator==(const SubGraph& a, const SubGraph& b);
  [[nodiscard]] uint64_t Hash() const;

 private:
  struct Shape;
  struct Data;
  explicit SubGraph(const Data* data) : data_(data) {}
  void Release();
  const Data* data_ = nullptr;  // counts its owners
};

/// A sub-graph within another, and the attributes of the function that it becomes ("Composite", "Primitive", "Compiler").
struct NestedSubGraph {
  SubGraph sub_graph;
  SharedAttributes attributes;

  friend bool operator==(const NestedSubGraph& a, const NestedSubGraph& b) = default;
};

/// The fusion kind of one node: an operator's own, tuple for tuples and projections, elementwise for constants and
/// variables, opaque for all else.
OpKind KindOf(const DataflowGraph& graph, PostDfsIndex node);

}  // namespace collage
