#pragma once

// Regions of rows: parts of a remainder whose results have an unknown number of rows, none of which depends on another. Each is a static
// program as soon as a number of rows is chosen (docs/design/extents.md).

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/onnx/graph.h"
#include "collage/onnx/reader.h"
#include "collage/op/remainder.h"

namespace collage::onnx_io {

struct RowRegions {
  OnnxGraph graph;  ///< computes the same, with the nodes of each region one after another
  std::vector<Remainder::Region> regions;
  std::vector<RegionFunctions> functions;  ///< of each region, one for each number of rows
};

/// The regions of a remainder, whose weights are the graph's initializers; `inputs` are the types of what the head gives it, by name. Each
/// region holds work enough that a program of its own may pay. What is not certain is in no region.
RowRegions FindRowRegions(const OnnxGraph& graph, const std::map<std::string, TensorType>& inputs, const std::vector<int64_t>& row_counts);

}  // namespace collage::onnx_io
