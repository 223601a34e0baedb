#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "collage/provider/ort.h"
#include "collage/provider/written_graph.h"

namespace collage::provider {

/// The nodes of a graph of ONNX Runtime, in topological order, and who takes whose values.
class GraphIndex {
 public:
  static Result<GraphIndex> Of(const Ort& ort, const OrtGraph* graph);

  [[nodiscard]] const std::vector<const OrtNode*>& nodes() const { return nodes_; }
  /// Of each node those before it whose values it takes.
  [[nodiscard]] const std::vector<std::vector<size_t>>& producers() const { return producers_; }
  [[nodiscard]] std::vector<const OrtNode*> NodesOf(const std::vector<size_t>& region) const;
  /// These nodes as a model: its inputs are what comes from elsewhere and is no constant, its outputs what is wanted elsewhere.
  /// Takes time by the size of the region: every node of a graph may be asked for alone.
  [[nodiscard]] Result<WrittenGraph> Write(const std::vector<size_t>& region) const;

 private:
  struct Value {
    std::string name;
    const OrtValueInfo* info;
    bool is_constant;
  };
  GraphIndex(const Ort& ort, const OrtGraph* graph) : ort_(ort), graph_(graph) {}

  const Ort& ort_;
  const OrtGraph* graph_;
  std::vector<const OrtNode*> nodes_;
  std::vector<std::vector<size_t>> producers_;
  std::vector<std::vector<Value>> inputs_;
  std::vector<std::vector<Value>> outputs_;
  std::unordered_set<std::string> graph_outputs_;
  std::unordered_map<std::string, std::vector<size_t>> consumers_;  // by value, nodes
};

}  // namespace collage::provider
