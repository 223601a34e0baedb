#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collage/backend/cudnn/graph.h"

namespace collage::cudnn {

/// One of the library's ways to compute a graph: an engine, and how its knobs are set.
struct Choice {
  int64_t engine;
  std::vector<std::pair<int64_t, int64_t>> knobs;  ///< the library's number of each, and its value
};

/// "engine70(2=12,18=0)"; without knobs "engine70".
std::string NameOf(const Choice& choice);
/// What has that name; nothing where it is none.
std::optional<Choice> ChoiceNamed(std::string_view name);

/// The first that the library's heuristics list of those that compute as exactly as the layer says; no kernel is compiled. None
/// where there is none. `handle`, of the graph, must be locked. Errors are the library's.
Result<std::vector<Choice>> ChoicesOf(const Graph& graph, const Layer& layer);

/// A graph, ready to run.
struct Plan {
  Graph graph;
  std::vector<Descriptor> parts;
  Descriptor plan;
  size_t workspace_bytes;
};

/// Compiles where the engine has to. `handle`, that of the graph, must be locked. Errors are the library's, or say that the engine computes
/// in another way than the layer says.
Result<Plan> MakePlan(Graph graph, const Choice& choice, const Layer& layer, cudnnHandle_t handle);

}  // namespace collage::cudnn
