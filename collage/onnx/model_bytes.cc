#include "collage/onnx/model_bytes.h"

#include <limits>

#include "collage/onnx/attribute_message.h"
#include "collage/onnx/data_type.h"
#include "onnx_message.pb.h"

namespace collage::onnx_io {
namespace {

constexpr size_t kMaximalBytes = std::numeric_limits<int32_t>::max();

void AppendVarint(size_t value, std::string& bytes) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
}

/// Tag and length of a field of bytes (protobuf wire type 2).
std::string FieldHeader(int field, size_t length) {
  std::string header;
  AppendVarint(static_cast<size_t>(field) << 3 | 2, header);
  AppendVarint(length, header);
  return header;
}

/// The message of an initializer up to its data, which follow.
std::string InitializerHeader(const InitializerBytes& value) {
  onnx_message::TensorProto message;
  for (int64_t extent : value.shape) message.add_dims(extent);
  message.set_data_type(static_cast<int32_t>(value.data_type));
  message.set_name(value.name);
  std::string fields = message.SerializeAsString() + FieldHeader(onnx_message::TensorProto::kRawDataFieldNumber, value.bytes.size());
  return FieldHeader(onnx_message::GraphProto::kInitializerFieldNumber, fields.size() + value.bytes.size()) + fields;
}

// Smaller ones cost less than what says where they are, and whoever reads shapes and axes wants them in the model.
constexpr size_t kLeastBeside = size_t{64} << 10;

/// A location that ONNX Runtime and OpenVINO take for memory of the process; the offset is an address then.
constexpr const char* kMemory = "*/_ORT_MEM_ADDR_/*";

void DescribeExternal(const std::string& name, const Tensor& value, bool has_address, onnx_message::TensorProto& message) {
  message.set_name(name);
  message.set_data_type(static_cast<int32_t>(OnnxDataType(value.dtype())));
  for (const int64_t extent : value.shape()) message.add_dims(extent);
  message.set_data_location(onnx_message::TensorProto::EXTERNAL);
  const auto add = [&](const char* key, const std::string& text) {
    auto& entry = *message.add_external_data();
    entry.set_key(key);
    entry.set_value(text);
  };
  add("location", has_address ? kMemory : "weights");
  if (!has_address) return;
  add("offset", std::to_string(reinterpret_cast<uintptr_t>(value.Bytes())));
  add("length", std::to_string(value.ByteCount()));
}

}  // namespace

void SetType(const TensorType& type, onnx_message::ValueInfoProto& info) {
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(static_cast<int32_t>(OnnxDataType(type.dtype)));
  tensor.clear_shape();
  tensor.mutable_shape();
  for (int64_t extent : type.shape) tensor.mutable_shape()->add_dim()->set_dim_value(extent);
}

// The model could be one message, but then each weight would exist three times: in the tensor, in the message and in the bytes. So the
// messages around the weights are made, and the weights are appended from their tensors.
Result<std::string> ModelBytes(const onnx_message::ModelProto& model, const onnx_message::GraphProto& graph,
                               const std::vector<NamedTensor>& initializers, WeightsBeside* beside) {
  std::vector<InitializerBytes> bytes;
  onnx_message::GraphProto with_others = graph;
  for (const auto& [name, value] : initializers) {
    if (beside && value.ByteCount() >= kLeastBeside && value.dtype() != DType::kString) {
      if (beside->as == LargeWeightsAs::kInputs) {
        onnx_message::ValueInfoProto& input = *with_others.add_input();
        input.set_name(name);
        SetType(value.type(), input);
      } else {
        DescribeExternal(name, value, beside->as == LargeWeightsAs::kAddresses, *with_others.add_initializer());
      }
      beside->weights.emplace_back(name, value);
      continue;
    }
    if (value.dtype() == DType::kString) {
      // They have no raw data, and are few.
      onnx_message::TensorProto& strings = *with_others.add_initializer();
      strings.set_name(name);
      COLLAGE_TRY_STATUS(SetTensor(value, strings));
      continue;
    }
    bytes.push_back({name, value.shape(), OnnxDataType(value.dtype()), {reinterpret_cast<const char*>(value.Bytes()), value.ByteCount()}});
  }
  return JoinModel(model.SerializeAsString(), with_others.SerializeAsString(), bytes);
}

Result<std::string> JoinModel(const std::string& model, const std::string& graph, const std::vector<InitializerBytes>& initializers) {
  std::vector<std::string> headers;
  size_t graph_bytes = graph.size();
  for (const InitializerBytes& initializer : initializers) {
    headers.push_back(InitializerHeader(initializer));
    graph_bytes += headers.back().size() + initializer.bytes.size();
  }
  if (graph_bytes + model.size() + 16 > kMaximalBytes) return Fail("the model exceeds 2 GiB, the limit of an ONNX message");
  // The graph comes first: OpenVINO 2026.4 takes bytes for no model where it meets a field, such as operator sets of two domains, for the
  // second time before it has seen three kinds of them.
  std::string bytes = FieldHeader(onnx_message::ModelProto::kGraphFieldNumber, graph_bytes);
  bytes.reserve(bytes.size() + graph_bytes + model.size());
  bytes += graph;
  for (size_t i = 0; i < headers.size(); ++i) {
    bytes += headers[i];
    bytes += initializers[i].bytes;
  }
  return bytes += model;
}

}  // namespace collage::onnx_io
