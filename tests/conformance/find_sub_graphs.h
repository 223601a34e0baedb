#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collage/backend/backend.h"
#include "collage/dataflow/sub_graph.h"

namespace collage::conformance {

struct FoundSubGraphs {
  std::vector<SubGraph> sub_graphs;
  std::string reason;  ///< of the last refusal
};

/// Every match of every pattern that its check accepts and that is one result, each wrapped as the composite of its label.
FoundSubGraphs FindMatches(const DataflowGraph& graph, const BackendRules& rules);

/// Supported operators, each alone; and regions grown from the first operator on as long as they stay valid and `takes` says yes.
FoundSubGraphs FindRegions(const DataflowGraph& graph, const BackendRules& rules, const std::function<bool(const SubGraph&)>& takes);

}  // namespace collage::conformance
