#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collage/partition/classic_flow.h"

namespace collage::tools {

/// What the stages of the classic flow have found in one function; a stage that has not run is absent.
struct FunctionData {
  std::string name;
  std::unique_ptr<DataflowGraph> graph;
  std::optional<std::vector<SupportedRegion>> supported;
  std::optional<std::vector<SupportedRegion>> assigned;
  std::optional<std::vector<BackendRegion>> regions;
};

enum class DataStage { kSupported, kAssigned, kRegions };

/// One stage as JSON. Nodes are called what "program", the text that stands beside, calls them; what the text gives no name, the result
/// of a scope, is "#" with its position in evaluation order and its operator.
///   {"program": "def @main..",
///    "functions": [{"function": "@main",
///                   "supported" or "assigned": [{"backend": "dnnl", "label": "dnnl.conv2d_relu", "members": ["%1", "%2"]}, ..],
///                   "structural": [".."]    (tuples and projections that "assigned" gives to nobody: they follow their neighbours)
///                   "regions": [{"backend", "members", "operators", "inputs", "outputs", "composites": [{"label", "members"}]}]}]}
nlohmann::ordered_json ToJson(const std::vector<FunctionData>& functions, DataStage stage, const IRModule& module,
                              const std::string& program, const std::vector<std::string>& backends);

}  // namespace collage::tools
