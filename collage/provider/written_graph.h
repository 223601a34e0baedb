#pragma once

#include <span>
#include <string>
#include <vector>

#include "collage/onnx/model_bytes.h"
#include "collage/provider/ort.h"
#include "collage/support/result.h"

namespace collage::provider {

/// Nodes of a graph of ONNX Runtime as an ONNX model whose weights are where ONNX Runtime has them, for as long as the call lasts that
/// brought the graph.
struct WrittenGraph {
  std::string model;  ///< message without its graph
  std::string graph;  ///< message without its initializers
  std::vector<onnx_io::InitializerBytes> initializers;

  /// A hash of all of it, 32 hexadecimal digits.
  [[nodiscard]] std::string Identity() const;
  /// The bytes of the model. Errors over 2 GiB, the limit of the format.
  [[nodiscard]] Result<std::string> Bytes() const;
};

/// `nodes` are of `graph` and in its order; constant initializers that they take are part of the model. Errors name the node, or the input
/// that is no tensor.
Result<WrittenGraph> WriteGraph(const Ort& ort, const OrtGraph* graph, std::span<const OrtNode* const> nodes,
                                std::span<const OrtValueInfo* const> inputs, std::span<const OrtValueInfo* const> outputs);

/// Inputs of a node that are there, and what bodies inside of it take from around it.
Result<std::vector<const OrtValueInfo*>> InputsOf(const Ort& ort, const OrtNode* node);
/// Outputs of a node that are there.
Result<std::vector<const OrtValueInfo*>> OutputsOf(const Ort& ort, const OrtNode* node);

/// "Conv 'conv1'", for messages.
Result<std::string> Describe(const Ort& ort, const OrtNode* node);

}  // namespace collage::provider
