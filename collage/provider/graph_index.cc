#include "collage/provider/graph_index.h"

#include <algorithm>

namespace collage::provider {

Result<GraphIndex> GraphIndex::Of(const Ort& ort, const OrtGraph* graph) {
  GraphIndex index(ort, graph);
  index.nodes_ = COLLAGE_TRY(ort.List<const OrtNode*>(ort.api.Graph_GetNumNodes, ort.api.Graph_GetNodes, graph));
  for (const OrtValueInfo* output :
       COLLAGE_TRY(ort.List<const OrtValueInfo*>(ort.api.Graph_GetNumOutputs, ort.api.Graph_GetOutputs, graph)))
    index.graph_outputs_.insert(COLLAGE_TRY(ort.Name(output)));
  std::unordered_map<std::string, size_t> producer_of;
  for (const OrtNode* node : index.nodes_) {
    const size_t place = index.inputs_.size();
    index.inputs_.emplace_back();
    index.producers_.emplace_back();
    for (const OrtValueInfo* input : COLLAGE_TRY(InputsOf(ort, node))) {
      const std::string name = COLLAGE_TRY(ort.Name(input));
      index.consumers_[name].push_back(place);
      index.inputs_.back().push_back({name, input, COLLAGE_TRY(ort.Get<bool>(ort.api.ValueInfo_IsConstantInitializer, input))});
      if (const auto producer = producer_of.find(name); producer != producer_of.end()) index.producers_.back().push_back(producer->second);
    }
    index.outputs_.emplace_back();
    for (const OrtValueInfo* output : COLLAGE_TRY(OutputsOf(ort, node))) {
      index.outputs_.back().push_back({COLLAGE_TRY(ort.Name(output)), output, false});
      producer_of[index.outputs_.back().back().name] = place;
    }
  }
  return index;
}

std::vector<const OrtNode*> GraphIndex::NodesOf(const std::vector<size_t>& region) const {
  std::vector<const OrtNode*> nodes;
  for (const size_t node : region) nodes.push_back(nodes_[node]);
  return nodes;
}

Result<WrittenGraph> GraphIndex::Write(const std::vector<size_t>& region) const {
  std::unordered_set<std::string> made;
  std::unordered_set<std::string> known;
  std::vector<const OrtValueInfo*> inputs;
  for (const size_t node : region) {
    for (const Value& input : inputs_[node]) {
      if (!input.is_constant && !made.contains(input.name) && known.insert(input.name).second) inputs.push_back(input.info);
    }
    for (const Value& output : outputs_[node]) made.insert(output.name);
  }
  const std::unordered_set<size_t> inside(region.begin(), region.end());
  const auto is_wanted = [&](const std::string& name) {
    const auto consumers = consumers_.find(name);
    return graph_outputs_.contains(name) ||
           (consumers != consumers_.end() &&
            std::any_of(consumers->second.begin(), consumers->second.end(), [&](size_t consumer) { return !inside.contains(consumer); }));
  };
  std::vector<const OrtValueInfo*> outputs;
  for (const size_t node : region) {
    for (const Value& output : outputs_[node]) {
      if (is_wanted(output.name)) outputs.push_back(output.info);
    }
  }
  return WriteGraph(ort_, graph_, NodesOf(region), inputs, outputs);
}

}  // namespace collage::provider
