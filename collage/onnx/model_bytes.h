#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage::onnx_message {
class GraphProto;
class ModelProto;
class ValueInfoProto;
}  // namespace collage::onnx_message

namespace collage::onnx_io {

/// A tensor of a graph by its name there.
using NamedTensor = std::pair<std::string, Tensor>;

/// The same of one that lies somewhere else.
struct InitializerBytes {
  std::string name;
  Shape shape;
  int64_t data_type = 0;   ///< TensorProto.DataType
  std::string_view bytes;  ///< as the format has raw data
};

/// Where large weights are: in the bytes, or beside them, as inputs of the graph behind its own, or as tensors at addresses of this process
/// or in a file that is not there.
enum class LargeWeightsAs { kBytes, kInputs, kAddresses, kExternalData };

/// Large weights that stay where they are: whoever reads the model is given them beside its bytes.
struct WeightsBeside {
  LargeWeightsAs as;
  std::vector<NamedTensor> weights;
};

/// Says of an input or output of a graph which element type and shape it has.
void SetType(const TensorType& type, onnx_message::ValueInfoProto& info);

/// The bytes of a model with this graph and initializers. `model` has no graph yet. Weights are copied once, from their tensors into the
/// bytes; those that are large are put to `beside` instead, if that is not null. Errors over 2 GiB, the limit of the format.
Result<std::string> ModelBytes(const onnx_message::ModelProto& model, const onnx_message::GraphProto& graph,
                               const std::vector<NamedTensor>& initializers, WeightsBeside* beside = nullptr);
/// The same of messages in bytes.
Result<std::string> JoinModel(const std::string& model, const std::string& graph, const std::vector<InitializerBytes>& initializers);

}  // namespace collage::onnx_io
