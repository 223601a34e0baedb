#include "collage/onnx/graph.h"

#include <limits>

#include "collage/onnx/data_type.h"
#include "collage/onnx/function_calls.h"
#include "collage/onnx/tensor_message.h"
#include "onnx_message.pb.h"

namespace collage::onnx_io {
namespace {

constexpr int64_t kOldestOpset = 6;
constexpr int64_t kNewestOpset = 28;

bool IsDefaultDomain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

Result<int64_t> OpsetOf(const onnx_message::ModelProto& model) {
  for (const auto& import : model.opset_import()) {
    if (!IsDefaultDomain(import.domain())) continue;
    if (import.version() >= kOldestOpset && import.version() <= kNewestOpset) return import.version();
    return Fail("the model uses opset " + std::to_string(import.version()) + "; opsets " + std::to_string(kOldestOpset) + " to " +
                std::to_string(kNewestOpset) + " are supported");
  }
  return Fail("the model does not say which version of the ONNX operator set it uses (opset_import)");
}

/// Files older than IR version 2 carry no type: the field that is filled in tells it.
onnx_message::AttributeProto::AttributeType TypeOf(const onnx_message::AttributeProto& attribute) {
  using onnx_message::AttributeProto;
  if (attribute.has_type() && attribute.type() != AttributeProto::UNDEFINED) return attribute.type();
  if (attribute.has_f()) return AttributeProto::FLOAT;
  if (attribute.has_i()) return AttributeProto::INT;
  if (attribute.has_s()) return AttributeProto::STRING;
  if (attribute.has_t()) return AttributeProto::TENSOR;
  if (attribute.floats_size() > 0) return AttributeProto::FLOATS;
  if (attribute.ints_size() > 0) return AttributeProto::INTS;
  return attribute.strings_size() > 0 ? AttributeProto::STRINGS : AttributeProto::UNDEFINED;
}

Result<OnnxAttribute> ReadAttribute(const onnx_message::AttributeProto& attribute, const std::filesystem::path& directory) {
  using onnx_message::AttributeProto;
  switch (TypeOf(attribute)) {
    case AttributeProto::FLOAT:
      return attribute.f();
    case AttributeProto::INT:
      return int64_t{attribute.i()};
    case AttributeProto::STRING:
      return attribute.s();
    case AttributeProto::FLOATS:
      return std::vector<float>(attribute.floats().begin(), attribute.floats().end());
    case AttributeProto::INTS:
      return std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end());
    case AttributeProto::STRINGS:
      return std::vector<std::string>(attribute.strings().begin(), attribute.strings().end());
    case AttributeProto::TENSOR: {
      Result<Tensor> tensor = ReadTensorMessage(attribute.t(), directory);
      if (!tensor) return Fail(tensor.error().At("attribute '" + attribute.name() + "'"));
      return std::move(*tensor);
    }
    default:
      return UnsupportedOnnxAttribute{};
  }
}

std::string PlaceOf(const onnx_message::NodeProto& node, int index) {
  return "node " + (node.name().empty() ? std::to_string(index) : "'" + node.name() + "'") + " (" + node.op_type() + ")";
}

Result<OnnxNode> ReadNode(const onnx_message::NodeProto& node, int64_t opset, const std::filesystem::path& directory) {
  OnnxNode result{node.name(), node.op_type(), IsDefaultDomain(node.domain()) ? "" : node.domain(), opset, 0, {}, {}, {}};
  result.inputs.assign(node.input().begin(), node.input().end());
  result.outputs.assign(node.output().begin(), node.output().end());
  for (const auto& attribute : node.attribute()) {
    OnnxAttribute value = COLLAGE_TRY(ReadAttribute(attribute, directory));
    if (!result.attributes.emplace(attribute.name(), std::move(value)).second) {
      return Fail("attribute '" + attribute.name() + "' is given twice");
    }
  }
  return result;
}

Status AppendNode(const onnx_message::NodeProto& node, size_t place, FunctionCalls& calls, const std::filesystem::path& directory,
                  OnnxGraph& graph) {
  if (!calls.IsCall(node)) {
    graph.nodes.push_back(COLLAGE_TRY(ReadNode(node, graph.opset, directory)));
    graph.nodes.back().place = place;
    return {};
  }
  for (const FunctionCalls::Expanded& expanded : COLLAGE_TRY(calls.Expand(node, graph.opset))) {
    graph.nodes.push_back(COLLAGE_TRY(ReadNode(*expanded.node, expanded.opset, directory)));
    graph.nodes.back().place = place;
  }
  return {};
}

OnnxInput ReadInput(const onnx_message::ValueInfoProto& input) {
  OnnxInput result{input.name(), std::nullopt, std::nullopt};
  if (!input.type().has_tensor_type()) return result;
  const auto& type = input.type().tensor_type();
  result.dtype = DTypeOfOnnx(type.elem_type());
  if (!type.has_shape()) return result;
  result.shape.emplace();
  for (const auto& dimension : type.shape().dim()) {
    // Some exporters write 0 or -1 where they mean "unknown".
    const bool known = dimension.has_dim_value() && dimension.dim_value() > 0;
    result.shape->push_back({known ? std::optional<int64_t>(dimension.dim_value()) : std::nullopt, dimension.dim_param()});
  }
  return result;
}

Status ReadInitializers(onnx_message::GraphProto& graph, const std::filesystem::path& directory, OnnxGraph& result) {
  for (onnx_message::TensorProto& message : *graph.mutable_initializer()) {
    Result<Tensor> tensor = ReadTensorMessage(message, directory);
    if (!tensor) return Fail(tensor.error().At("initializer '" + message.name() + "'"));
    result.initializers.emplace_back(message.name(), std::move(*tensor));
    onnx_message::TensorProto().Swap(&message);  // weights need not be held twice
  }
  if (graph.sparse_initializer_size() > 0) {
    return Fail("initializer '" + graph.sparse_initializer(0).values().name() + "' is sparse, which is not supported");
  }
  return {};
}

}  // namespace

Result<OnnxGraph> ParseOnnxGraph(std::string_view bytes, const std::filesystem::path& external_data_directory) {
  if (bytes.empty()) return Fail("the file is empty; an ONNX model is expected");
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return Fail("the model is larger than 2 GiB: its weights must be kept as external data");
  }
  onnx_message::ModelProto model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Fail("this is no ONNX model, or it is truncated or damaged");
  }
  if (!model.has_graph()) return Fail("this is no ONNX model: it has no graph");
  OnnxGraph result;
  result.opset = COLLAGE_TRY(OpsetOf(model));
  onnx_message::GraphProto& graph = *model.mutable_graph();
  COLLAGE_TRY_STATUS(ReadInitializers(graph, external_data_directory, result));
  for (const auto& input : graph.input()) result.inputs.push_back(ReadInput(input));
  for (const auto& output : graph.output()) result.outputs.push_back(output.name());
  FunctionCalls calls(model);
  for (int i = 0; i < graph.node_size(); ++i) {
    Status status = AppendNode(graph.node(i), static_cast<size_t>(i), calls, external_data_directory, result);
    if (!status) return Fail(status.error().At(PlaceOf(graph.node(i), i)));
  }
  return result;
}

}  // namespace collage::onnx_io
