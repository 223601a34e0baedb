#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage {

/// A rooted tree that grows by leaves and answers ancestor questions in logarithmic time, each node keeping one jump pointer
/// beside its parent (Myers, "An applicative random-access stack", 1983). Walking parents alone would be quadratic where many
/// values skip over long chains. Node 0 is the root.
class AncestorTree {
 public:
  explicit AncestorTree(size_t expected = 0) {
    nodes_.reserve(expected + 1);
    nodes_.push_back({0, 0, 0});
  }

  /// Adds a leaf and gives its number; numbers are handed out in sequence.
  size_t Add(size_t parent);
  [[nodiscard]] size_t size() const { return nodes_.size(); }
  [[nodiscard]] size_t Parent(size_t node) const { return nodes_[node].parent; }
  [[nodiscard]] size_t Depth(size_t node) const { return nodes_[node].depth; }
  [[nodiscard]] size_t LowestCommonAncestor(size_t a, size_t b) const;
  /// True when `ancestor` is `node` or lies above it.
  [[nodiscard]] bool IsAncestor(size_t ancestor, size_t node) const;

 private:
  struct Node {
    uint32_t parent;
    uint32_t jump;
    uint32_t depth;
  };
  [[nodiscard]] size_t AtDepth(size_t node, size_t depth) const;

  std::vector<Node> nodes_;
};

}  // namespace collage
