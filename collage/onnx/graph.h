#pragma once

// An ONNX model as plain values: what the reader walks. Parsing checks that the message is well formed; what operators mean
// is not known here.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collage/ir/model_metadata.h"
#include "collage/onnx/attribute.h"
#include "collage/onnx/model_data.h"
#include "collage/support/result.h"

namespace collage::onnx_io {

/// One extent of a declared shape: known, or symbolic with a name that may be empty.
struct OnnxDimension {
  std::optional<int64_t> extent;
  std::string symbol;
};

struct OnnxInput {
  std::string name;
  std::optional<DType> dtype;                       ///< absent when it is no dense tensor, or sequence of such, of a supported type
  std::optional<std::vector<OnnxDimension>> shape;  ///< absent when even the rank is unknown
  bool is_sequence = false;                         ///< of tensors of that dtype and shape
  bool is_optional = false;
};

struct OnnxNode {
  std::string name;  ///< may be empty
  std::string op_type;
  std::string domain;  ///< empty for the default operator set
  int64_t opset = 0;   ///< version of the default operator set: the model's, or that of the function it stood in
  size_t place = 0;    ///< among the nodes of the model's graph; inside a function or a body, that of the node that calls or holds it
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::map<std::string, OnnxAttribute> attributes;
};

/// The model's graph, or a body: the graph that a node of control flow holds, which may read values of the graphs around it.
struct OnnxGraph {
  int64_t opset = 0;
  std::vector<OnnxNode> nodes;
  std::vector<std::pair<std::string, Tensor>> initializers;
  std::vector<OnnxInput> inputs;  ///< initializers that are listed as inputs included
  std::vector<std::string> outputs;
  std::vector<OnnxInput> output_types = {};  ///< of the outputs, as they are declared
  ModelMetadata metadata = {};               ///< of a model
};

/// Parses the bytes of a model; tensors in files of their own are read from `external_data_directory`, whose links may lead to
/// `folder_of_model` (ExternalFiles). With an owner of the bytes, tensors may be views of them.
Result<OnnxGraph> ParseOnnxGraph(const TensorBytes& model, const std::filesystem::path& external_data_directory,
                                 const std::filesystem::path& folder_of_model = {});

}  // namespace collage::onnx_io
