#pragma once

#include "collage/support/hash.h"
#include "collage/support/index_set.h"

namespace collage {

/// A covered set without its long solid prefix, so that a state of a 10 000-node graph stays a few words: nodes below `next` are
/// covered, `next` is not, and of the nodes above it those in `tail` are.
struct Covered {
  size_t next = 0;
  IndexSet tail;

  [[nodiscard]] bool Contains(size_t node) const { return node < next || tail.Contains(node); }
  friend bool operator==(const Covered&, const Covered&) = default;
};

struct CoveredHash {
  size_t operator()(const Covered& covered) const { return HashCombine(covered.tail.Hash(), covered.next); }
};

/// The covered set together with a candidate that starts at its next node.
Covered After(const Covered& covered, const IndexSet& inside);

}  // namespace collage
