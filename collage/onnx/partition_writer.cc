#include "collage/onnx/partition_writer.h"

#include <algorithm>
#include <cctype>

#include "collage/ir/op_sequence.h"
#include "collage/onnx/attribute_message.h"
#include "collage/onnx/graph_writer.h"
#include "onnx_message.pb.h"

namespace collage::onnx_io {
namespace {

std::string AsIdentifier(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

/// "conv2d_bias_add_relu"; what is longer than a convolution with all that libraries fuse into it is named by how it begins.
std::string FunctionName(const OpSequence& sequence) {
  constexpr size_t kMostOperators = 4;  // convolution, bias, sum, activation
  const size_t count = sequence.steps.size();
  const size_t named = count > kMostOperators ? kMostOperators - 1 : count;
  std::string name;
  for (size_t i = 0; i < named; ++i) {
    const std::string& op = sequence.steps[i].op->name;
    name += (name.empty() ? "" : "_") + op.substr(op.rfind('.') + 1);
  }
  if (count > named) name += "_and_" + std::to_string(count - named) + "_more";
  return name.empty() ? "identity" : name;
}

void SetInt(const std::string& name, int64_t value, onnx_message::NodeProto& node) {
  onnx_message::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx_message::AttributeProto::INT);
  attribute.set_i(value);
}

Tensor Ints(const std::vector<int64_t>& values) {
  return Tensor::FromVector(TensorType{{static_cast<int64_t>(values.size())}, DType::kInt64}, values);
}

}  // namespace

/// The values of a block where it is written, by their names.
class PartitionWriter::BlockValues {
 public:
  BlockValues(const PartitionedBlock& block, const std::unordered_map<size_t, std::string>& wanted, PartitionWriter& writer)
      : block_(block), wanted_(wanted), writer_(writer), names_(block.values.size()) {}

  Status Define(size_t value, const std::string& name) {
    if (value >= names_.size()) return Fail("value " + std::to_string(value) + " is not there");
    if (!names_[value].empty()) return Fail("value " + std::to_string(value) + " is given twice");
    names_[value] = name;
    return {};
  }

  /// Of a value that a call gives.
  Result<std::string> Give(size_t value, GraphScope& scope) {
    if (value >= names_.size()) return Fail("value " + std::to_string(value) + " is not there");
    const auto wanted = wanted_.find(value);
    const std::string name = wanted != wanted_.end() ? wanted->second : writer_.AddTensor("tensor", block_.values[value].type, scope);
    COLLAGE_TRY_STATUS(Define(value, name));
    return name;
  }

  /// Of a value that is read. What is moved becomes a node where it is first needed; it is of earlier values, so this loop ends.
  Result<std::string> NameOf(size_t value, GraphScope& scope) {
    std::vector<size_t> open = {value};
    while (!open.empty()) {
      const size_t at = open.back();
      if (at >= names_.size()) return Fail("value " + std::to_string(at) + " is not there");
      const PartitionedBlock::Value& description = block_.values[at];
      const size_t before = open.size();
      if (names_[at].empty() && description.constant) names_[at] = writer_.AddWeight("constant", *description.constant);
      if (names_[at].empty()) {
        if (!description.moved) return Fail("value " + std::to_string(at) + " is used before it is there");
        for (const size_t source : description.moved->of) {
          if (source >= at) return Fail("value " + std::to_string(at) + " is used before it is there");
          if (names_[source].empty()) open.push_back(source);
        }
        if (open.size() == before) WriteMoved(at, scope);
      }
      if (open.size() == before) open.pop_back();
    }
    return names_[value];
  }

 private:
  void WriteMoved(size_t value, GraphScope& scope) {
    const PartitionedBlock::Moved& moved = *block_.values[value].moved;
    const Shape& shape = block_.values[value].type.shape;
    names_[value] = writer_.names().Fresh("view");
    std::vector<std::string> inputs;
    for (const size_t source : moved.of) inputs.push_back(names_[source]);
    const auto add = [&](const std::string& type, const std::string& prefix) -> onnx_message::NodeProto& {
      return writer_.AddNode(type, prefix + names_[value], inputs, {names_[value]}, scope);
    };
    switch (moved.kind) {
      case PartitionedBlock::Moved::Kind::kReshape: {
        inputs.push_back(writer_.AddWeight("shape", Ints(shape)));
        onnx_message::NodeProto& node = add("Reshape", "reshape_");
        // Otherwise zero means the extent of what is reshaped.
        if (std::find(shape.begin(), shape.end(), 0) != shape.end()) SetInt("allowzero", 1, node);
        return;
      }
      case PartitionedBlock::Moved::Kind::kConcat:
        return SetInt("axis", moved.axis, add("Concat", "concat_"));
      case PartitionedBlock::Moved::Kind::kSlice: {
        const int64_t end = moved.begin + shape[static_cast<size_t>(moved.axis)];
        for (const auto& [name, number] : {std::pair("starts", moved.begin), std::pair("ends", end), std::pair("axes", moved.axis)})
          inputs.push_back(writer_.AddWeight(name, Ints({number})));
        add("Slice", "slice_");
      }
    }
  }

  const PartitionedBlock& block_;
  const std::unordered_map<size_t, std::string>& wanted_;
  PartitionWriter& writer_;
  std::vector<std::string> names_;  // empty: not there yet
};

PartitionWriter::PartitionWriter(const WriteOptions& options, PartitionedModel::Nodes nodes) : options_(options), nodes_(nodes) {}
PartitionWriter::~PartitionWriter() = default;

Result<std::vector<std::string>> PartitionWriter::WriteBlock(const PartitionedBlock& block, const std::vector<std::string>& inputs,
                                                             const std::unordered_map<size_t, std::string>& wanted, GraphScope& scope) {
  BlockValues values(block, wanted, *this);
  for (size_t i = 0; i < block.inputs.size(); ++i) COLLAGE_TRY_STATUS(values.Define(block.inputs[i], inputs[i]));
  for (const PartitionedBlock::Call& call : block.calls) {
    Status status = WriteCall(call, values, scope);
    if (!status) return Fail(status.error().At(call.name));
  }
  std::vector<std::string> outputs;
  for (size_t i = 0; i < block.outputs.size(); ++i) {
    Result<std::string> name = values.NameOf(block.outputs[i], scope);
    if (!name) return Fail(name.error().At("output " + std::to_string(i)));
    outputs.push_back(std::move(*name));
  }
  return outputs;
}

Status PartitionWriter::WriteCall(const PartitionedBlock::Call& call, BlockValues& values, GraphScope& scope) {
  const Function* function = call.function->As<Function>();
  if (!function) return Fail("is no function");
  const OpSequence sequence = COLLAGE_TRY(ToOpSequence(*function));
  if (sequence.parameters.size() != call.inputs.size() || sequence.results.size() != call.outputs.size())
    return Fail("its function has another number of inputs or outputs than its call");
  onnx_message::FunctionProto written;
  std::vector<NamedTensor> weights;
  COLLAGE_TRY_STATUS(GraphWriter(sequence, options_).WriteFunction(written, weights));
  std::vector<std::string> inputs;
  for (const size_t input : call.inputs) inputs.push_back(COLLAGE_TRY(values.NameOf(input, scope)));
  for (const auto& [name, value] : weights) inputs.push_back(AddWeight(call.name + "." + name, value));
  std::vector<std::string> outputs;
  for (const size_t output : call.outputs) outputs.push_back(COLLAGE_TRY(values.Give(output, scope)));
  ++partitions_;
  if (nodes_ == PartitionedModel::Nodes::kInPlace) {
    AddNodesOf(written, call, inputs, outputs, scope);
    return {};
  }
  std::string& name = partition_functions_[written.SerializeAsString()];
  if (name.empty()) name = AddFunction(FunctionName(sequence), written);
  onnx_message::NodeProto& node = AddNode(name, call.name, inputs, outputs, scope);
  node.set_domain(kPartitionDomain);
  AddRemarks(call, node);
  return {};
}

void PartitionWriter::AddNodesOf(onnx_message::FunctionProto& function, const PartitionedBlock::Call& call,
                                 const std::vector<std::string>& inputs, const std::vector<std::string>& outputs, GraphScope& scope) {
  std::unordered_map<std::string, std::string> names{{"", ""}};
  for (int i = 0; i < function.input_size(); ++i) names[function.input(i)] = inputs[static_cast<size_t>(i)];
  for (int i = 0; i < function.output_size(); ++i) names[function.output(i)] = outputs[static_cast<size_t>(i)];
  const auto name_of = [&](const std::string& name) -> const std::string& {
    std::string& own = names[name];
    if (own.empty() && !name.empty()) own = names_.Fresh(call.name + "." + name);
    return own;
  };
  for (onnx_message::NodeProto& node : *function.mutable_node()) {
    for (std::string& input : *node.mutable_input()) input = name_of(input);
    for (std::string& output : *node.mutable_output()) {
      output = name_of(output);
      scope.given.insert(output);
    }
    node.set_name(node_names_.Fresh(call.name + "." + node.name()));
    AddRemarks(call, node);
    scope.graph.add_node()->Swap(&node);
  }
  NoteDomains(function);
}

void PartitionWriter::AddRemarks(const PartitionedBlock::Call& call, onnx_message::NodeProto& node) {
  for (const auto& [key, value] : call.remarks) {
    auto& entry = *node.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
}

void PartitionWriter::NoteDomains(const onnx_message::FunctionProto& function) {
  for (const auto& import : function.opset_import()) {
    if (!import.domain().empty() && import.domain() != kPartitionDomain) domains_.insert(import.domain());
  }
}

std::string PartitionWriter::AddFunction(const std::string& hint, onnx_message::FunctionProto& function) {
  NoteDomains(function);
  std::string name = function_names_.Fresh(AsIdentifier(hint));
  function.set_name(name);
  function.set_domain(kPartitionDomain);
  functions_.emplace_back().Swap(&function);
  return name;
}

onnx_message::NodeProto& PartitionWriter::AddNode(const std::string& op_type, const std::string& hint,
                                                  const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                                                  GraphScope& scope) {
  onnx_message::NodeProto& node = *scope.graph.add_node();
  node.set_op_type(op_type);
  node.set_name(node_names_.Fresh(hint));
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  scope.given.insert(outputs.begin(), outputs.end());
  return node;
}

std::string PartitionWriter::AddTensor(const std::string& hint, const TensorType& type, GraphScope& scope) {
  std::string name = names_.Fresh(hint);
  onnx_message::ValueInfoProto& info = *scope.graph.add_value_info();
  info.set_name(name);
  SetType(type, info);
  return name;
}

std::string PartitionWriter::AddWeight(const std::string& hint, const Tensor& value) {
  std::string& name = weights_[{value.Bytes(), value.dtype(), value.shape()}];
  if (name.empty()) {
    name = names_.Fresh(hint);
    initializers_.emplace_back(name, value);
  }
  NoteWeightsRead({name});
  return name;
}

void PartitionWriter::AddNamedWeight(const std::string& name, const Tensor& value) {
  weights_.emplace(std::tuple(value.Bytes(), value.dtype(), value.shape()), name);
  initializers_.emplace_back(name, value);
}

std::vector<std::string> PartitionWriter::AsResults(std::vector<std::string> names, GraphScope& scope) {
  std::unordered_set<std::string> seen;
  for (std::string& name : names) {
    if (scope.given.contains(name) && seen.insert(name).second) continue;
    const std::string copy = names_.Fresh("result");
    AddNode("Identity", "identity_" + copy, {name}, {copy}, scope);
    name = copy;
  }
  return names;
}

std::vector<std::string> PartitionWriter::TakeWeightsRead() {
  is_read_.clear();
  return std::exchange(weights_read_, {});
}

void PartitionWriter::NoteWeightsRead(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (is_read_.insert(name).second) weights_read_.push_back(name);
  }
}

}  // namespace collage::onnx_io
