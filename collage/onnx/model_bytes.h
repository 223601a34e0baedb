#pragma once

#include <string>
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

/// Says of an input or output of a graph which element type and shape it has.
void SetType(const TensorType& type, onnx_message::ValueInfoProto& info);

/// The bytes of a model with this graph and initializers. `model` has no graph yet. Weights are copied once, from their tensors into the
/// bytes. Errors over 2 GiB, the limit of the format.
Result<std::string> ModelBytes(const onnx_message::ModelProto& model, const onnx_message::GraphProto& graph,
                               const std::vector<NamedTensor>& initializers);

}  // namespace collage::onnx_io
