#include "collage/onnx/attribute_message.h"

#include "collage/onnx/data_type.h"
#include "collage/onnx/graph_message.h"
#include "collage/tensor/strings.h"
#include "onnx_message.pb.h"

namespace collage::onnx_io {
namespace {

using onnx_message::AttributeProto;

struct Setter {
  AttributeProto& attribute;

  Status operator()(int64_t value) const {
    attribute.set_type(AttributeProto::INT);
    attribute.set_i(value);
    return {};
  }
  Status operator()(float value) const {
    attribute.set_type(AttributeProto::FLOAT);
    attribute.set_f(value);
    return {};
  }
  Status operator()(const std::string& value) const {
    attribute.set_type(AttributeProto::STRING);
    attribute.set_s(value);
    return {};
  }
  Status operator()(const std::vector<int64_t>& values) const {
    attribute.set_type(AttributeProto::INTS);
    for (const int64_t value : values) attribute.add_ints(value);
    return {};
  }
  Status operator()(const std::vector<float>& values) const {
    attribute.set_type(AttributeProto::FLOATS);
    for (const float value : values) attribute.add_floats(value);
    return {};
  }
  Status operator()(const std::vector<std::string>& values) const {
    attribute.set_type(AttributeProto::STRINGS);
    for (const std::string& value : values) attribute.add_strings(value);
    return {};
  }
  Status operator()(const Tensor& value) const {
    attribute.set_type(AttributeProto::TENSOR);
    return SetTensor(value, *attribute.mutable_t());
  }
  Status operator()(const std::shared_ptr<const OnnxGraph>& body) const {
    attribute.set_type(AttributeProto::GRAPH);
    return SetGraph(*body, *attribute.mutable_g());
  }
  Status operator()(const UnsupportedOnnxAttribute&) const { return Fail("is of a kind that cannot be written"); }
};

}  // namespace

Status SetTensor(const Tensor& value, onnx_message::TensorProto& tensor) {
  if (BitWidth(value.dtype()) < 8) return Fail("a tensor of " + std::string(Name(value.dtype())) + " has no written form here");
  for (const int64_t extent : value.shape()) tensor.add_dims(extent);
  tensor.set_data_type(static_cast<int32_t>(OnnxDataType(value.dtype())));
  if (value.dtype() != DType::kString) {
    tensor.set_raw_data(value.Bytes(), value.ByteCount());
    return {};
  }
  for (const std::string& text : StringsOf(value)) tensor.add_string_data(text);
  return {};
}

Status SetAttribute(const std::string& name, const OnnxAttribute& value, AttributeProto& attribute) {
  attribute.set_name(name);
  Status status = std::visit(Setter{attribute}, value);
  return status ? Status{} : Fail(status.error().At("attribute '" + name + "'"));
}

}  // namespace collage::onnx_io
