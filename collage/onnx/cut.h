#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collage/onnx/graph.h"
#include "collage/onnx/graph_reader.h"
#include "collage/onnx/remainder.h"

namespace collage::onnx_io {

/// A graph in two: values that its readable nodes give, and the nodes that take them.
struct Cut {
  std::vector<Expr> head;               ///< in the order of the remainder's inputs, tensors only
  std::vector<std::string> head_names;  ///< of sequences "name[0]", "name[1]"
  std::shared_ptr<const Remainder> remainder;
};

/// `reader` has read `graph` and left nodes out. Errors name the node that is not supported or cannot be kept.
Result<Cut> CutGraph(const OnnxGraph& graph, const GraphReader& reader);

}  // namespace collage::onnx_io
