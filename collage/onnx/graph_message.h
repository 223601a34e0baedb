#pragma once

// A graph of values (graph.h) as a message again, for what is kept of a model.

#include <string>

#include "collage/onnx/graph.h"

namespace collage::onnx_message {
class GraphProto;
}  // namespace collage::onnx_message

namespace collage::onnx_io {

/// Writes a graph with its nodes, bodies and initializers. Errors on nodes of another opset than the graph, and those of SetAttribute;
/// they name the node.
Status SetGraph(const OnnxGraph& graph, onnx_message::GraphProto& message);

/// The bytes of a model of this graph; ParseOnnxGraph reads the same again.
Result<std::string> ModelMessage(const OnnxGraph& graph);

}  // namespace collage::onnx_io
