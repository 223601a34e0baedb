#pragma once

#include <cstdint>
#include <vector>

#include "collage/dataflow/sub_graph.h"

namespace collage {

/// Sub-graphs in the order in which they were first added, each once. The table beside them holds numbers and parts of hashes only, a
/// few bytes each, so that it stays in the caches when there are hundreds of thousands.
class DistinctSubGraphs {
 public:
  /// False when an equal one is there already.
  bool Add(SubGraph sub_graph);
  [[nodiscard]] const std::vector<SubGraph>& list() const { return list_; }
  [[nodiscard]] std::vector<SubGraph> Take() { return std::move(list_); }

 private:
  struct Slot {
    uint32_t hash;
    uint32_t number;  // position in the list plus one; zero: empty
  };
  void Grow();

  std::vector<SubGraph> list_;
  std::vector<Slot> slots_;  // a power of two, at most half full; linear probing
};

}  // namespace collage
