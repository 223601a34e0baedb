#pragma once

#include <string>
#include <unordered_set>
#include <vector>

namespace collage::onnx_message {
class GraphProto;
class NodeProto;
}  // namespace collage::onnx_message

namespace collage::onnx_io {

/// Adds the names that a node reads, those in its bodies included (and names that only its bodies know).
void AddNamesRead(const onnx_message::NodeProto& node, std::unordered_set<std::string>& names);

/// The nodes of a graph, each behind those whose results it reads, otherwise in the order of the file (Kahn, 1962). ONNX demands that order
/// of files. Tools that append casts, such as ONNX Runtime's converter to float16, write others, which it reads. Those of a circle, and
/// what stands behind one, come last.
std::vector<int> NodeOrder(const onnx_message::GraphProto& graph);

}  // namespace collage::onnx_io
