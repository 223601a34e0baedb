#pragma once

#include <vector>

#include "collage/candidate/number_tables.h"
#include "collage/dataflow/sub_graph.h"

namespace collage {

/// Sub-graphs, each once. Equal ones have the same last node, so they are looked for by that.
class DistinctSubGraphs {
 public:
  /// False when an equal one is there already.
  bool Add(const SubGraph& sub_graph) {
    const auto is_equal = [&](uint32_t number) { return list_[number] == sub_graph; };
    if (!tables_.Insert(sub_graph.inside().Last(), sub_graph.Hash(), list_.size(), is_equal)) return false;
    list_.push_back(sub_graph);
    return true;
  }
  [[nodiscard]] bool Contains(const SubGraph& sub_graph) const {
    const auto is_equal = [&](uint32_t number) { return list_[number] == sub_graph; };
    return tables_.Contains(sub_graph.inside().Last(), sub_graph.Hash(), is_equal);
  }

 private:
  std::vector<SubGraph> list_;
  NumberTables tables_;
};

}  // namespace collage
