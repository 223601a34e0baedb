#include "collage/dataflow/ancestor_tree.h"

#include <algorithm>

namespace collage {

size_t AncestorTree::Add(size_t parent) {
  const Node& up = nodes_[parent];
  const Node& jump = nodes_[up.jump];
  const bool equal_jumps = up.depth - jump.depth == jump.depth - nodes_[jump.jump].depth;
  const auto above = static_cast<uint32_t>(parent);
  nodes_.push_back({above, equal_jumps ? jump.jump : above, up.depth + 1});
  return nodes_.size() - 1;
}

size_t AncestorTree::AtDepth(size_t node, size_t depth) const {
  while (nodes_[node].depth > depth) {
    const size_t jump = nodes_[node].jump;
    node = nodes_[jump].depth >= depth ? jump : nodes_[node].parent;
  }
  return node;
}

size_t AncestorTree::LowestCommonAncestor(size_t a, size_t b) const {
  const size_t depth = std::min<size_t>(nodes_[a].depth, nodes_[b].depth);
  a = AtDepth(a, depth);
  b = AtDepth(b, depth);
  // Nodes of equal depth have jumps of equal length, so both climb in step.
  while (a != b) {
    const bool jump = nodes_[a].jump != nodes_[b].jump;
    a = jump ? nodes_[a].jump : nodes_[a].parent;
    b = jump ? nodes_[b].jump : nodes_[b].parent;
  }
  return a;
}

bool AncestorTree::IsAncestor(size_t ancestor, size_t node) const {
  return nodes_[ancestor].depth <= nodes_[node].depth && AtDepth(node, nodes_[ancestor].depth) == ancestor;
}

}  // namespace collage
