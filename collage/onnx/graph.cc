#include "collage/onnx/graph.h"

#include <algorithm>
#include <limits>

#include "collage/onnx/data_type.h"
#include "collage/onnx/function_calls.h"
#include "collage/onnx/node_order.h"
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
  const auto& nodes = model.graph().node();
  const bool uses_none = std::none_of(nodes.begin(), nodes.end(), [](const auto& node) { return IsDefaultDomain(node.domain()); });
  if (uses_none && model.opset_import_size() > 0) return kNewestOpset;  // nobody asks
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

std::string PlaceOf(const onnx_message::NodeProto& node, int index) {
  return "node " + (node.name().empty() ? std::to_string(index) : "'" + node.name() + "'") + " (" + node.op_type() + ")";
}

OnnxInput ReadInput(const onnx_message::ValueInfoProto& input) {
  OnnxInput result{input.name(), std::nullopt, std::nullopt};
  const onnx_message::TypeProto* outer = &input.type();
  result.is_optional = outer->has_optional_type();
  if (result.is_optional) outer = &outer->optional_type().elem_type();
  result.is_sequence = outer->has_sequence_type();
  if (result.is_sequence) outer = &outer->sequence_type().elem_type();
  if (!outer->has_tensor_type()) return result;
  const auto& type = outer->tensor_type();
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

/// Reads the graph of a model and the bodies inside it. Recursion is as deep as bodies nest, which the message parser bounds.
class GraphParser {
 public:
  GraphParser(const onnx_message::ModelProto& model, ExternalFiles& files) : calls_(model), files_(files) {}

  /// Of bodies, `place` is that of the node of the model's graph inside which they stand.
  Result<OnnxGraph> Read(const onnx_message::GraphProto& graph, int64_t opset, std::optional<size_t> place) {
    OnnxGraph result;
    result.opset = opset;
    for (const auto& message : graph.initializer()) COLLAGE_TRY_STATUS(ReadInitializer(message, std::nullopt, result));
    for (const auto& message : graph.sparse_initializer()) {
      Result<Tensor> tensor = ReadSparseMessage(message, files_);
      if (!tensor) return Fail(tensor.error().At("initializer '" + message.values().name() + "'"));
      result.initializers.emplace_back(message.values().name(), std::move(*tensor));
    }
    for (const auto& input : graph.input()) result.inputs.push_back(ReadInput(input));
    for (const auto& output : graph.output()) {
      result.outputs.push_back(output.name());
      result.output_types.push_back(ReadInput(output));
    }
    for (const int i : NodeOrder(graph)) {
      Status status = AppendNode(graph.node(i), place.value_or(static_cast<size_t>(i)), result);
      if (!status) return Fail(status.error().At(PlaceOf(graph.node(i), i)));
    }
    return result;
  }

  /// `raw`: its raw data, where they are not in the message.
  Status ReadInitializer(const onnx_message::TensorProto& message, const std::optional<TensorBytes>& raw, OnnxGraph& result) const {
    Result<Tensor> tensor = ReadTensorMessage(message, files_, raw);
    if (!tensor) return Fail(tensor.error().At("initializer '" + message.name() + "'"));
    result.initializers.emplace_back(message.name(), std::move(*tensor));
    return {};
  }

 private:
  Status AppendNode(const onnx_message::NodeProto& node, size_t place, OnnxGraph& graph) {
    if (!calls_.IsCall(node)) {
      graph.nodes.push_back(COLLAGE_TRY(ReadNode(node, graph.opset, place)));
      return {};
    }
    for (const FunctionCalls::Expanded& expanded : COLLAGE_TRY(calls_.Expand(node, graph.opset)))
      graph.nodes.push_back(COLLAGE_TRY(ReadNode(*expanded.node, expanded.opset, place)));
    return {};
  }

  Result<OnnxNode> ReadNode(const onnx_message::NodeProto& node, int64_t opset, size_t place) {
    OnnxNode result{node.name(), node.op_type(), IsDefaultDomain(node.domain()) ? "" : node.domain(), opset, place, {}, {}, {}};
    result.inputs.assign(node.input().begin(), node.input().end());
    result.outputs.assign(node.output().begin(), node.output().end());
    for (const auto& attribute : node.attribute()) {
      Result<OnnxAttribute> value = ReadAttribute(attribute, opset, place);
      if (!value) return Fail(value.error().At("attribute '" + attribute.name() + "'"));
      if (!result.attributes.emplace(attribute.name(), std::move(*value)).second) {
        return Fail("attribute '" + attribute.name() + "' is given twice");
      }
    }
    return result;
  }

  Result<OnnxAttribute> ReadAttribute(const onnx_message::AttributeProto& attribute, int64_t opset, size_t place) {
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
      case AttributeProto::TENSOR:
        return OnnxAttribute(COLLAGE_TRY(ReadTensorMessage(attribute.t(), files_)));
      case AttributeProto::SPARSE_TENSOR:
        return OnnxAttribute(COLLAGE_TRY(ReadSparseMessage(attribute.sparse_tensor(), files_)));
      case AttributeProto::GRAPH:
        return OnnxAttribute(std::make_shared<const OnnxGraph>(COLLAGE_TRY(Read(attribute.g(), opset, place))));
      default:
        return UnsupportedOnnxAttribute{};
    }
  }

  FunctionCalls calls_;
  ExternalFiles& files_;
};

ModelMetadata MetadataOf(const onnx_message::ModelProto& model) {
  ModelMetadata metadata;
  metadata.producer_name = model.producer_name();
  metadata.graph_name = model.graph().name();
  metadata.domain = model.domain();
  metadata.description = model.doc_string();
  metadata.graph_description = model.graph().doc_string();
  metadata.version = model.model_version();
  for (const auto& property : model.metadata_props()) metadata.custom_metadata_map.emplace(property.key(), property.value());
  return metadata;
}

}  // namespace

Result<OnnxGraph> ParseOnnxGraph(const TensorBytes& model_bytes, const std::filesystem::path& external_data_directory,
                                 const std::filesystem::path& folder_of_model) {
  if (model_bytes.bytes.empty()) return Fail("the file is empty; an ONNX model is expected");
  std::optional<SplitModel> split = SplitRawData(model_bytes.bytes);
  const std::string_view bytes = split ? std::string_view(split->message) : model_bytes.bytes;
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    return Fail("the model is larger than 2 GiB without the raw data of its initializers: its weights must be kept as these, or outside");
  onnx_message::ModelProto model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Fail("this is no ONNX model, or it is truncated or damaged");
  }
  if (!model.has_graph()) return Fail("this is no ONNX model: it has no graph");
  const int64_t opset = COLLAGE_TRY(OpsetOf(model));
  ExternalFiles files(external_data_directory, folder_of_model);
  GraphParser parser(model, files);
  OnnxGraph weights;
  for (int i = 0; i < model.graph().initializer_size(); ++i) {
    onnx_message::TensorProto& message = *model.mutable_graph()->mutable_initializer(i);
    std::optional<TensorBytes> raw;
    if (split && split->raw_data[static_cast<size_t>(i)]) raw = {*split->raw_data[static_cast<size_t>(i)], model_bytes.owner};
    COLLAGE_TRY_STATUS(parser.ReadInitializer(message, raw, weights));
    onnx_message::TensorProto().Swap(&message);  // weights in typed fields need not be held twice
  }
  model.mutable_graph()->clear_initializer();
  OnnxGraph result = COLLAGE_TRY(parser.Read(model.graph(), opset, std::nullopt));
  weights.initializers.insert(weights.initializers.end(), result.initializers.begin(), result.initializers.end());
  result.initializers = std::move(weights.initializers);
  result.metadata = MetadataOf(model);
  return result;
}

}  // namespace collage::onnx_io
