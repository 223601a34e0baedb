#include "collage/onnx/graph_message.h"

#include <set>

#include "collage/onnx/attribute_message.h"
#include "collage/onnx/data_type.h"
#include "onnx_message.pb.h"

namespace collage::onnx_io {
namespace {

// The first that has optional types.
constexpr int64_t kIrVersion = 8;

void SetValue(const OnnxInput& value, onnx_message::ValueInfoProto& message) {
  message.set_name(value.name);
  onnx_message::TypeProto* type = message.mutable_type();
  if (value.is_optional) type = type->mutable_optional_type()->mutable_elem_type();
  if (value.is_sequence) type = type->mutable_sequence_type()->mutable_elem_type();
  if (!value.dtype) return;
  auto& tensor = *type->mutable_tensor_type();
  tensor.set_elem_type(static_cast<int32_t>(OnnxDataType(*value.dtype)));
  if (!value.shape) return;
  tensor.mutable_shape();
  for (const OnnxDimension& dimension : *value.shape) {
    auto& written = *tensor.mutable_shape()->add_dim();
    if (dimension.extent) {
      written.set_dim_value(*dimension.extent);
    } else if (!dimension.symbol.empty()) {
      written.set_dim_param(dimension.symbol);
    }
  }
}

Status SetNode(const OnnxNode& node, int64_t opset, onnx_message::NodeProto& message) {
  if (node.opset != opset)
    return Fail("is of opset " + std::to_string(node.opset) + ", from a function, in a model of opset " + std::to_string(opset));
  message.set_name(node.name);
  message.set_op_type(node.op_type);
  message.set_domain(node.domain);
  for (const std::string& input : node.inputs) message.add_input(input);
  for (const std::string& output : node.outputs) message.add_output(output);
  for (const auto& [name, value] : node.attributes) COLLAGE_TRY_STATUS(SetAttribute(name, value, *message.add_attribute()));
  return {};
}

/// Recursion is as deep as bodies nest, which the message parser bounds.
void AddDomains(const OnnxGraph& graph, std::set<std::string>& domains) {
  for (const OnnxNode& node : graph.nodes) {
    domains.insert(node.domain);
    for (const auto& [name, value] : node.attributes) {
      if (const auto* body = std::get_if<std::shared_ptr<const OnnxGraph>>(&value)) AddDomains(**body, domains);
    }
  }
}

}  // namespace

Status SetGraph(const OnnxGraph& graph, onnx_message::GraphProto& message) {
  message.set_name("graph");
  for (const auto& [name, tensor] : graph.initializers) {
    onnx_message::TensorProto& written = *message.add_initializer();
    written.set_name(name);
    if (Status status = SetTensor(tensor, written); !status) return Fail(status.error().At("initializer '" + name + "'"));
  }
  for (const OnnxInput& input : graph.inputs) SetValue(input, *message.add_input());
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    OnnxInput output = i < graph.output_types.size() ? graph.output_types[i] : OnnxInput{};
    output.name = graph.outputs[i];
    SetValue(output, *message.add_output());
  }
  for (const OnnxNode& node : graph.nodes) {
    Status status = SetNode(node, graph.opset, *message.add_node());
    if (!status) return Fail(status.error().At("node '" + node.name + "' (" + node.op_type + ")"));
  }
  return {};
}

Result<std::string> ModelMessage(const OnnxGraph& graph) {
  onnx_message::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("collage");
  std::set<std::string> domains{""};
  AddDomains(graph, domains);
  for (const std::string& domain : domains) {
    auto& import = *model.add_opset_import();
    import.set_domain(domain);
    import.set_version(domain.empty() ? graph.opset : 1);
  }
  COLLAGE_TRY_STATUS(SetGraph(graph, *model.mutable_graph()));
  return model.SerializeAsString();
}

}  // namespace collage::onnx_io
