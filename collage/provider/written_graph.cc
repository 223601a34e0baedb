#include "collage/provider/written_graph.h"

#include <spdlog/fmt/fmt.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <utility>

#include "onnx_message.pb.h"

namespace collage::provider {
namespace {

using onnx_io::InitializerBytes;
using onnx_message::AttributeProto;
using onnx_message::GraphProto;
using onnx_message::ModelProto;
using onnx_message::NodeProto;
using onnx_message::TensorProto;
using onnx_message::ValueInfoProto;

// From this version of the format on, initializers need not be inputs as well.
constexpr int64_t kInitializersAlone = 4;

using TypeAndShape = std::unique_ptr<OrtTensorTypeAndShapeInfo, void (*)(OrtTensorTypeAndShapeInfo*)>;

Status WriteValue(const Ort& ort, const OrtValueInfo* value, ValueInfoProto& message) {
  const std::string name = COLLAGE_TRY(ort.Name(value));
  message.set_name(name);
  const OrtTypeInfo* type = COLLAGE_TRY(ort.Get<const OrtTypeInfo*>(ort.api.GetValueInfoTypeInfo, value));
  const auto* tensor = COLLAGE_TRY(ort.Get<const OrtTensorTypeAndShapeInfo*>(ort.api.CastTypeInfoToTensorInfo, type));
  if (!tensor) return Fail("'" + name + "' is no tensor");
  auto& written = *message.mutable_type()->mutable_tensor_type();
  written.set_elem_type(COLLAGE_TRY(ort.Get<int>(ort.api.GetTensorElementType, tensor)));
  if (!ort.api.TensorTypeAndShape_HasShape(tensor)) return {};
  const auto extents = COLLAGE_TRY(ort.List<int64_t>(ort.api.GetDimensionsCount, ort.api.GetDimensions, tensor));
  const auto symbols = COLLAGE_TRY(ort.List<const char*>(ort.api.GetDimensionsCount, ort.api.GetSymbolicDimensions, tensor));
  written.mutable_shape();
  for (size_t i = 0; i < extents.size(); ++i) {
    auto& dimension = *written.mutable_shape()->add_dim();
    if (extents[i] >= 0) {
      dimension.set_dim_value(extents[i]);
    } else if (*symbols[i]) {
      dimension.set_dim_param(symbols[i]);
    }
  }
  return {};
}

/// Where the value of a constant tensor is. Errors on strings.
Result<InitializerBytes> BytesOf(const Ort& ort, const OrtValue* value, std::string name) {
  InitializerBytes bytes{std::move(name), {}, 0, {}};
  OrtTensorTypeAndShapeInfo* type = nullptr;
  COLLAGE_TRY_STATUS(ort.Check(ort.api.GetTensorTypeAndShape(value, &type)));
  const TypeAndShape held(type, ort.api.ReleaseTensorTypeAndShapeInfo);
  const auto* read = static_cast<const OrtTensorTypeAndShapeInfo*>(type);
  bytes.data_type = COLLAGE_TRY(ort.Get<int>(ort.api.GetTensorElementType, read));
  if (bytes.data_type == TensorProto::STRING) return Fail("'" + bytes.name + "' is a tensor of strings");
  bytes.shape = COLLAGE_TRY(ort.List<int64_t>(ort.api.GetDimensionsCount, ort.api.GetDimensions, read));
  const size_t size = COLLAGE_TRY(ort.Get<size_t>(ort.api.GetTensorSizeInBytes, value));
  const void* data = size > 0 ? COLLAGE_TRY(ort.Get<const void*>(ort.api.GetTensorData, value)) : nullptr;
  bytes.bytes = {static_cast<const char*>(data), size};
  return bytes;
}

void WriteTensor(const InitializerBytes& value, TensorProto& message) {
  message.set_name(value.name);
  message.set_data_type(static_cast<int32_t>(value.data_type));
  for (const int64_t extent : value.shape) message.add_dims(extent);
  message.set_raw_data(std::string(value.bytes));
}

/// The bytes of a value of fixed size, or of a list of them.
template <class Value>
Result<std::vector<Value>> Values(const Ort& ort, const OrtOpAttr* attribute, int type) {
  size_t bytes = 0;
  // Says how many are needed, and that none were given.
  if (OrtStatus* status = ort.api.ReadOpAttr(attribute, type, nullptr, 0, &bytes)) ort.api.ReleaseStatus(status);
  std::vector<Value> values(bytes / sizeof(Value));
  if (!values.empty()) COLLAGE_TRY_STATUS(ort.Check(ort.api.ReadOpAttr(attribute, type, values.data(), bytes, &bytes)));
  return values;
}

Status WriteTensorAttribute(const Ort& ort, const OrtOpAttr* attribute, TensorProto& message) {
  OrtValue* value = nullptr;
  COLLAGE_TRY_STATUS(ort.Check(ort.api.OpAttr_GetTensorAttributeAsOrtValue(attribute, &value)));
  const std::unique_ptr<OrtValue, void (*)(OrtValue*)> held(value, ort.api.ReleaseValue);
  WriteTensor(COLLAGE_TRY(BytesOf(ort, value, "")), message);
  return {};
}

Status WriteAttribute(const Ort& ort, const OrtOpAttr* attribute, NodeProto& node) {
  const int type = COLLAGE_TRY(ort.Get<int>(ort.api.OpAttr_GetType, attribute));
  if (type == kGraph) return {};  // written with the bodies
  AttributeProto& message = *node.add_attribute();
  message.set_name(COLLAGE_TRY(ort.Get<const char*>(ort.api.OpAttr_GetName, attribute)));
  switch (type) {
    case kInt: {
      message.set_type(AttributeProto::INT);
      for (const int64_t value : COLLAGE_TRY(Values<int64_t>(ort, attribute, type))) message.set_i(value);
      return {};
    }
    case kInts: {
      message.set_type(AttributeProto::INTS);
      for (const int64_t value : COLLAGE_TRY(Values<int64_t>(ort, attribute, type))) message.add_ints(value);
      return {};
    }
    case kFloat: {
      message.set_type(AttributeProto::FLOAT);
      for (const float value : COLLAGE_TRY(Values<float>(ort, attribute, type))) message.set_f(value);
      return {};
    }
    case kFloats: {
      message.set_type(AttributeProto::FLOATS);
      for (const float value : COLLAGE_TRY(Values<float>(ort, attribute, type))) message.add_floats(value);
      return {};
    }
    // Each string of a list ends with a zero; a single one did in some versions of ONNX Runtime.
    case kString: {
      message.set_type(AttributeProto::STRING);
      const std::vector<char> text = COLLAGE_TRY(Values<char>(ort, attribute, type));
      message.set_s(std::string(text.begin(), text.end() - (!text.empty() && text.back() == '\0' ? 1 : 0)));
      return {};
    }
    case kStrings: {
      message.set_type(AttributeProto::STRINGS);
      const std::vector<char> text = COLLAGE_TRY(Values<char>(ort, attribute, type));
      for (auto begin = text.begin(); begin != text.end();) {
        const auto end = std::find(begin, text.end(), '\0');
        message.add_strings(std::string(begin, end));
        begin = end + (end == text.end() ? 0 : 1);
      }
      return {};
    }
    case kTensor: {
      message.set_type(AttributeProto::TENSOR);
      return WriteTensorAttribute(ort, attribute, *message.mutable_t());
    }
    default:
      return Fail("attribute '" + message.name() + "' is of a kind that ONNX Runtime does not give to providers");
  }
}

Status WriteNode(const Ort& ort, const OrtNode* node, NodeProto& message);

/// A graph inside of a node.
Status WriteBody(const Ort& ort, const OrtGraph* body, GraphProto& message) {
  message.set_name("body");
  for (const OrtValueInfo* input : COLLAGE_TRY(ort.List<const OrtValueInfo*>(ort.api.Graph_GetNumInputs, ort.api.Graph_GetInputs, body)))
    COLLAGE_TRY_STATUS(WriteValue(ort, input, *message.add_input()));
  for (const OrtValueInfo* output : COLLAGE_TRY(ort.List<const OrtValueInfo*>(ort.api.Graph_GetNumOutputs, ort.api.Graph_GetOutputs, body)))
    COLLAGE_TRY_STATUS(WriteValue(ort, output, *message.add_output()));
  for (const OrtValueInfo* initializer :
       COLLAGE_TRY(ort.List<const OrtValueInfo*>(ort.api.Graph_GetNumInitializers, ort.api.Graph_GetInitializers, body))) {
    const OrtValue* value = COLLAGE_TRY(ort.Get<const OrtValue*>(ort.api.ValueInfo_GetInitializerValue, initializer));
    WriteTensor(COLLAGE_TRY(BytesOf(ort, value, COLLAGE_TRY(ort.Name(initializer)))), *message.add_initializer());
  }
  for (const OrtNode* node : COLLAGE_TRY(ort.List<const OrtNode*>(ort.api.Graph_GetNumNodes, ort.api.Graph_GetNodes, body)))
    COLLAGE_TRY_STATUS(WriteNode(ort, node, *message.add_node()));
  return {};
}

Status WriteBodies(const Ort& ort, const OrtNode* node, NodeProto& message) {
  std::vector<const OrtGraph*> bodies(COLLAGE_TRY(ort.Get<size_t>(ort.api.Node_GetNumSubgraphs, node)));
  std::vector<const char*> names(bodies.size());
  if (bodies.empty()) return {};
  COLLAGE_TRY_STATUS(ort.Check(ort.api.Node_GetSubgraphs(node, bodies.data(), bodies.size(), names.data())));
  for (size_t i = 0; i < bodies.size(); ++i) {
    AttributeProto& attribute = *message.add_attribute();
    attribute.set_name(names[i]);
    attribute.set_type(AttributeProto::GRAPH);
    COLLAGE_TRY_STATUS(WriteBody(ort, bodies[i], *attribute.mutable_g()));
  }
  return {};
}

Status WriteNodeUnnamed(const Ort& ort, const OrtNode* node, NodeProto& message) {
  message.set_name(COLLAGE_TRY(ort.Get<const char*>(ort.api.Node_GetName, node)));
  message.set_op_type(COLLAGE_TRY(ort.Get<const char*>(ort.api.Node_GetOperatorType, node)));
  message.set_domain(COLLAGE_TRY(ort.Get<const char*>(ort.api.Node_GetDomain, node)));
  for (const OrtValueInfo* input : COLLAGE_TRY(ort.List<const OrtValueInfo*>(ort.api.Node_GetNumInputs, ort.api.Node_GetInputs, node)))
    message.add_input(input ? COLLAGE_TRY(ort.Name(input)) : "");
  for (const OrtValueInfo* output : COLLAGE_TRY(ort.List<const OrtValueInfo*>(ort.api.Node_GetNumOutputs, ort.api.Node_GetOutputs, node)))
    message.add_output(output ? COLLAGE_TRY(ort.Name(output)) : "");
  for (const OrtOpAttr* attribute :
       COLLAGE_TRY(ort.List<const OrtOpAttr*>(ort.api.Node_GetNumAttributes, ort.api.Node_GetAttributes, node)))
    COLLAGE_TRY_STATUS(WriteAttribute(ort, attribute, message));
  return WriteBodies(ort, node, message);
}

Status WriteNode(const Ort& ort, const OrtNode* node, NodeProto& message) {
  const Status status = WriteNodeUnnamed(ort, node, message);
  if (status) return {};
  return Fail(status.error().At(COLLAGE_TRY(Describe(ort, node))));
}

Result<std::vector<InitializerBytes>> ConstantsOf(const Ort& ort, std::span<const OrtNode* const> nodes) {
  std::vector<InitializerBytes> constants;
  std::unordered_set<std::string> known;
  for (const OrtNode* node : nodes) {
    for (const OrtValueInfo* input : COLLAGE_TRY(InputsOf(ort, node))) {
      if (!COLLAGE_TRY(ort.Get<bool>(ort.api.ValueInfo_IsConstantInitializer, input))) continue;
      std::string name = COLLAGE_TRY(ort.Name(input));
      if (!known.insert(name).second) continue;
      const OrtValue* value = COLLAGE_TRY(ort.Get<const OrtValue*>(ort.api.ValueInfo_GetInitializerValue, input));
      constants.push_back(COLLAGE_TRY(BytesOf(ort, value, std::move(name))));
    }
  }
  return constants;
}

Result<ModelProto> ModelAround(const Ort& ort, const OrtGraph* graph) {
  ModelProto model;
  model.set_ir_version(std::max(kInitializersAlone, COLLAGE_TRY(ort.Get<int64_t>(ort.api.Graph_GetOnnxIRVersion, graph))));
  const size_t count = COLLAGE_TRY(ort.Get<size_t>(ort.api.Graph_GetNumOperatorSets, graph));
  std::vector<const char*> domains(count);
  std::vector<int64_t> versions(count);
  COLLAGE_TRY_STATUS(ort.Check(ort.api.Graph_GetOperatorSets(graph, domains.data(), versions.data(), count)));
  // They come in the order of a hash table, which must not change what the model is.
  std::vector<std::pair<std::string, int64_t>> sets;
  for (size_t i = 0; i < count; ++i) sets.emplace_back(domains[i], versions[i]);
  std::sort(sets.begin(), sets.end());
  for (const auto& [domain, version] : sets) {
    auto& set = *model.add_opset_import();
    set.set_domain(domain);
    set.set_version(version);
  }
  return model;
}

}  // namespace

std::string WrittenGraph::Identity() const {
  // Of 128 bits: programs of models are found by this alone.
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(), XXH3_freeState);
  XXH3_128bits_reset(state.get());
  const auto add_number = [&](uint64_t number) { XXH3_128bits_update(state.get(), &number, sizeof number); };
  // Each behind its length, so that no two lists of texts are alike.
  const auto add_text = [&](std::string_view text) {
    add_number(text.size());
    XXH3_128bits_update(state.get(), text.data(), text.size());
  };
  add_text(model);
  add_text(graph);
  for (const InitializerBytes& initializer : initializers) {
    add_text(initializer.name);
    add_number(static_cast<uint64_t>(initializer.data_type));
    add_number(initializer.shape.size());
    for (const int64_t extent : initializer.shape) add_number(static_cast<uint64_t>(extent));
    add_text(initializer.bytes);
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

Result<std::string> WrittenGraph::Bytes() const { return onnx_io::JoinModel(model, graph, initializers); }

Result<std::vector<const OrtValueInfo*>> InputsOf(const Ort& ort, const OrtNode* node) {
  auto inputs = COLLAGE_TRY(ort.List<const OrtValueInfo*>(ort.api.Node_GetNumInputs, ort.api.Node_GetInputs, node));
  const auto of_bodies =
      COLLAGE_TRY(ort.List<const OrtValueInfo*>(ort.api.Node_GetNumImplicitInputs, ort.api.Node_GetImplicitInputs, node));
  inputs.insert(inputs.end(), of_bodies.begin(), of_bodies.end());
  std::erase(inputs, nullptr);
  return inputs;
}

Result<std::vector<const OrtValueInfo*>> OutputsOf(const Ort& ort, const OrtNode* node) {
  auto outputs = COLLAGE_TRY(ort.List<const OrtValueInfo*>(ort.api.Node_GetNumOutputs, ort.api.Node_GetOutputs, node));
  std::erase(outputs, nullptr);
  return outputs;
}

Result<std::string> Describe(const Ort& ort, const OrtNode* node) {
  const std::string type = COLLAGE_TRY(ort.Get<const char*>(ort.api.Node_GetOperatorType, node));
  return type + " '" + COLLAGE_TRY(ort.Get<const char*>(ort.api.Node_GetName, node)) + "'";
}

Result<WrittenGraph> WriteGraph(const Ort& ort, const OrtGraph* graph, std::span<const OrtNode* const> nodes,
                                std::span<const OrtValueInfo* const> inputs, std::span<const OrtValueInfo* const> outputs) {
  GraphProto message;
  message.set_name("graph");
  for (const OrtValueInfo* input : inputs) COLLAGE_TRY_STATUS(WriteValue(ort, input, *message.add_input()));
  for (const OrtValueInfo* output : outputs) COLLAGE_TRY_STATUS(WriteValue(ort, output, *message.add_output()));
  for (const OrtNode* node : nodes) COLLAGE_TRY_STATUS(WriteNode(ort, node, *message.add_node()));
  WrittenGraph written;
  written.model = COLLAGE_TRY(ModelAround(ort, graph)).SerializeAsString();
  written.graph = message.SerializeAsString();
  written.initializers = COLLAGE_TRY(ConstantsOf(ort, nodes));
  return written;
}

}  // namespace collage::provider
