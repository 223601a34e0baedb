#pragma once

#include <string>

#include "collage/onnx/attribute.h"
#include "collage/support/result.h"

namespace collage::onnx_message {
class AttributeProto;
class TensorProto;
}  // namespace collage::onnx_message

namespace collage::onnx_io {

/// Writes an attribute of a node. Errors on what `graph_message.h` cannot write: tensors of less than a byte an element, and attributes
/// of a kind that no operator takes.
Status SetAttribute(const std::string& name, const OnnxAttribute& value, onnx_message::AttributeProto& attribute);

/// A tensor with its elements, without a name. Errors where it is of less than a byte an element.
Status SetTensor(const Tensor& value, onnx_message::TensorProto& tensor);

}  // namespace collage::onnx_io
