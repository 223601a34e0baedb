#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collage/onnx/graph.h"
#include "collage/onnx/graph_reader.h"
#include "collage/onnx/remainder.h"
#include "collage/onnx/row_regions.h"

namespace collage::onnx_io {

/// A graph in two: values that its readable nodes give, and the nodes that take them.
struct Cut {
  std::vector<Expr> head;               ///< in the order of the remainder's inputs, tensors only
  std::vector<std::string> head_names;  ///< of sequences "name[0]", "name[1]"
  std::shared_ptr<const Remainder> remainder;
  std::vector<RegionFunctions> regions = {};  ///< of the remainder's regions of rows
};

/// `reader` has read `graph` and left nodes out. Regions of rows are looked for with each of these numbers of rows, none where there are
/// none. Errors name the node that is not supported or cannot be kept.
Result<Cut> CutGraph(const OnnxGraph& graph, const GraphReader& reader, const std::vector<int64_t>& row_counts);

}  // namespace collage::onnx_io
