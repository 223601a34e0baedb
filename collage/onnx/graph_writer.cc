#include "collage/onnx/graph_writer.h"

#include <algorithm>
#include <unordered_set>

#include "collage/onnx/attribute_message.h"
#include "collage/onnx/data_type.h"
#include "collage/onnx/model_bytes.h"
#include "collage/onnx/node_writer.h"
#include "collage/onnx/rows.h"
#include "collage/onnx/tensor_message.h"
#include "collage/tensor/narrow.h"
#include "onnx_message.pb.h"

namespace collage::onnx_io {
namespace {

constexpr int64_t kWrittenIrVersion = 8;

}  // namespace

struct GraphWriter::Message {
  onnx_message::ModelProto model;
  onnx_message::GraphProto graph;
};

GraphWriter::GraphWriter(OpSequence sequence, const WriteOptions& options)
    : sequence_(std::move(sequence)), options_(options), message_(std::make_unique<Message>()) {
  const auto complete = [](std::vector<std::string>& names, size_t count, const char* prefix) {
    if (!names.empty()) return;
    for (size_t i = 0; i < count; ++i) names.push_back(prefix + std::to_string(i));
  };
  complete(options_.input_names, sequence_.parameters.size(), "p");
  complete(options_.output_names, sequence_.results.size(), "r");
}

GraphWriter::~GraphWriter() = default;

Status GraphWriter::CheckNames() const {
  const auto check = [](const std::vector<std::string>& names, size_t count, const char* what) -> Status {
    if (names.size() == count) return {};
    return Fail(std::to_string(names.size()) + " names are given for " + std::to_string(count) + " " + what);
  };
  COLLAGE_TRY_STATUS(check(options_.input_names, sequence_.parameters.size(), "inputs"));
  COLLAGE_TRY_STATUS(check(options_.output_names, sequence_.results.size(), "outputs"));
  std::unordered_set<std::string> seen;
  for (const auto* names : {&options_.input_names, &options_.output_names}) {
    for (const std::string& name : *names) {
      if (name.empty() || !seen.insert(name).second) return Fail("the name '" + name + "' of an input or output is empty or not unique");
    }
  }
  return {};
}

void GraphWriter::CountUses() {
  use_counts_.assign(sequence_.values.size(), 0);
  last_user_.assign(sequence_.values.size(), 0);
  is_result_.assign(sequence_.values.size(), false);
  producer_.assign(sequence_.values.size(), kNoStep);
  absorbed_.assign(sequence_.steps.size(), false);
  for (size_t i = 0; i < sequence_.steps.size(); ++i) {
    for (size_t input : sequence_.steps[i].inputs) {
      ++use_counts_[input];
      last_user_[input] = i;
    }
    for (size_t output : sequence_.steps[i].outputs) producer_[output] = i;
  }
  for (size_t result : sequence_.results) {
    ++use_counts_[result];
    is_result_[result] = true;
  }
}

void GraphWriter::NameBoundary() {
  value_names_.assign(sequence_.values.size(), "");
  for (const auto* names : {&options_.input_names, &options_.output_names}) {
    for (const std::string& name : *names) names_.Reserve(name);
  }
  for (size_t i = 0; i < sequence_.parameters.size(); ++i) {
    const size_t value = sequence_.parameters[i];
    value_names_[value] = options_.input_names[i];
    onnx_message::ValueInfoProto& info = *message_->graph.add_input();
    info.set_name(options_.input_names[i]);
    SetType(sequence_.values[value].type, info);
  }
  for (size_t i = 0; i < sequence_.results.size(); ++i) {
    const size_t value = sequence_.results[i];
    onnx_message::ValueInfoProto& info = *message_->graph.add_output();
    info.set_name(options_.output_names[i]);
    SetType(sequence_.values[value].type, info);
    if (value_names_[value].empty() && !sequence_.values[value].constant) value_names_[value] = options_.output_names[i];
  }
}

std::string GraphWriter::NameOf(size_t value) {
  std::string& name = value_names_[value];
  if (!name.empty()) return name;
  const std::optional<Tensor>& constant = sequence_.values[value].constant;
  name = constant ? AddTensor(*constant, weights_) : names_.Fresh("tensor");
  return name;
}

std::string GraphWriter::AddTensor(const Tensor& value, std::vector<NamedTensor>& tensors) {
  std::string name = names_.Fresh("constant");
  tensors.emplace_back(name, value);
  return name;
}

void GraphWriter::AddNode(const std::string& op_type, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                          const OnnxAttributes& attributes) {
  onnx_message::NodeProto& node = *message_->graph.add_node();
  const size_t dot = op_type.rfind('.');
  if (dot != std::string::npos) {
    node.set_domain(op_type.substr(0, dot));
    domains_.insert(node.domain());
  }
  node.set_op_type(op_type.substr(dot + 1));
  node.set_name(node.op_type() + "_" + std::to_string(message_->graph.node_size() - 1));
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  for (const auto& [name, value] : attributes) {
    const Status status = SetAttribute(name, value, *node.add_attribute());
    COLLAGE_CHECK(status.has_value(), "what we write has no tensors of less than a byte an element");
  }
}

/// Types that are younger than the opset that is written.
Status GraphWriter::CheckTypes() const {
  for (const OpSequence::Value& value : sequence_.values) {
    const DType dtype = value.type.dtype;
    if (dtype == DType::kString && !options_.is_complete) return Fail("tensors of strings have no written form");
    if (!IsNarrow(dtype) || IsSixteenBitFloat(dtype)) continue;
    return Fail(std::string(Name(dtype)) + " has no form in opset " + std::to_string(options_.opset));
  }
  return {};
}

Status GraphWriter::WriteSteps() {
  for (size_t i = 0; i < sequence_.steps.size(); ++i) {
    if (absorbed_[i]) continue;
    const std::string& op = sequence_.steps[i].op->name;
    const WriteRow* row = FindWriteRow(op);
    if (row == nullptr) return Fail(op + " has no ONNX form");
    NodeWriter writer(this, i);
    if (Status status = row->write(writer); !status) return Fail(status.error().At(op));
  }
  return {};
}

void GraphWriter::WriteResults() {
  for (size_t i = 0; i < sequence_.results.size(); ++i) {
    const std::string name = NameOf(sequence_.results[i]);
    if (name != options_.output_names[i]) AddNode("Identity", {name}, {options_.output_names[i]}, {});
  }
}

void GraphWriter::DropUnread() {
  std::unordered_set<std::string> read(options_.output_names.begin(), options_.output_names.end());
  auto nodes = std::move(*message_->graph.mutable_node());
  message_->graph.clear_node();
  std::vector<bool> is_kept(static_cast<size_t>(nodes.size()), false);
  for (int i = nodes.size(); i-- > 0;) {
    const auto& outputs = nodes[i].output();
    is_kept[static_cast<size_t>(i)] =
        std::any_of(outputs.begin(), outputs.end(), [&](const std::string& name) { return read.contains(name); });
    if (is_kept[static_cast<size_t>(i)]) read.insert(nodes[i].input().begin(), nodes[i].input().end());
  }
  for (int i = 0; i < nodes.size(); ++i) {
    if (is_kept[static_cast<size_t>(i)]) message_->graph.add_node()->Swap(&nodes[i]);
  }
  for (auto* tensors : {&weights_, &descriptions_})
    std::erase_if(*tensors, [&](const NamedTensor& one) { return !read.contains(one.first); });
}

template <class Proto>
void GraphWriter::AddImports(Proto& message) const {
  const auto add = [&](const std::string& domain, int64_t version) {
    auto& import = *message.add_opset_import();
    import.set_domain(domain);
    import.set_version(version);
  };
  add("", options_.opset);
  for (const std::string& domain : domains_) add(domain, 1);
}

Result<std::string> GraphWriter::Serialize() {
  message_->model.set_ir_version(kWrittenIrVersion);
  message_->model.set_producer_name("collage");
  AddImports(message_->model);
  message_->graph.set_name(options_.graph_name);
  std::vector<NamedTensor> initializers = weights_;
  initializers.insert(initializers.end(), descriptions_.begin(), descriptions_.end());
  return ModelBytes(message_->model, message_->graph, initializers, options_.beside);
}

Status GraphWriter::WriteNodes() {
  COLLAGE_TRY_STATUS(CheckNames());
  COLLAGE_TRY_STATUS(CheckTypes());
  CountUses();
  NameBoundary();
  COLLAGE_TRY_STATUS(WriteSteps());
  WriteResults();
  if (options_.is_complete) DropUnread();
  return {};
}

Result<std::string> GraphWriter::Write() {
  COLLAGE_TRY_STATUS(WriteNodes());
  return Serialize();
}

Status GraphWriter::WriteFunction(onnx_message::FunctionProto& function, std::vector<NamedTensor>& weights) {
  COLLAGE_TRY_STATUS(WriteNodes());
  for (const auto& input : message_->graph.input()) function.add_input(input.name());
  for (const auto& [name, value] : weights_) function.add_input(name);
  for (const auto& output : message_->graph.output()) function.add_output(output.name());
  AddImports(function);
  for (const auto& [name, value] : descriptions_) {
    onnx_message::NodeProto& node = *function.add_node();
    node.set_name("Constant_" + std::to_string(function.node_size() - 1));
    node.set_op_type("Constant");
    node.add_output(name);
    COLLAGE_TRY_STATUS(SetAttribute("value", value, *node.add_attribute()));
  }
  for (onnx_message::NodeProto& node : *message_->graph.mutable_node()) function.add_node()->Swap(&node);
  weights = std::move(weights_);
  return {};
}

const OpSequence::Step& NodeWriter::step() const { return graph_->sequence_.steps[step_]; }

int64_t NodeWriter::opset() const { return graph_->options_.opset; }

bool NodeWriter::is_complete() const { return graph_->options_.is_complete; }

const TensorType& NodeWriter::InputType(size_t index) const { return graph_->sequence_.values[step().inputs[index]].type; }

const TensorType& NodeWriter::OutputType(size_t index) const { return graph_->sequence_.values[step().outputs[index]].type; }

const Tensor* NodeWriter::InputConstant(size_t index) const {
  const std::optional<Tensor>& constant = graph_->sequence_.values[step().inputs[index]].constant;
  return constant ? &*constant : nullptr;
}

std::optional<NodeWriter> NodeWriter::Producer(size_t index) const {
  const size_t producer = graph_->producer_[step().inputs[index]];
  return producer == GraphWriter::kNoStep ? std::nullopt : std::optional(NodeWriter(graph_, producer));
}

std::string NodeWriter::Input(size_t index) const { return graph_->NameOf(step().inputs[index]); }

std::vector<std::string> NodeWriter::Inputs() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < input_count(); ++i) names.push_back(Input(i));
  return names;
}

std::string NodeWriter::Initializer(const Tensor& value) { return graph_->AddTensor(value, graph_->descriptions_); }

std::string NodeWriter::Weight(const Tensor& value) { return graph_->AddTensor(value, graph_->weights_); }

std::string NodeWriter::Ints(const std::vector<int64_t>& values) {
  return Initializer(Tensor::FromVector(TensorType{{static_cast<int64_t>(values.size())}, DType::kInt64}, values));
}

std::string NodeWriter::Scalar(double value, DType dtype) { return Initializer(ScalarOf(value, dtype)); }

void NodeWriter::Emit(const std::string& op_type, const std::vector<std::string>& inputs, const OnnxAttributes& attributes, size_t output) {
  graph_->AddNode(op_type, inputs, {graph_->NameOf(step().outputs[output])}, attributes);
}

void NodeWriter::EmitAll(const std::string& op_type, const std::vector<std::string>& inputs, const OnnxAttributes& attributes) {
  std::vector<std::string> outputs;
  for (size_t output : step().outputs) outputs.push_back(graph_->NameOf(output));
  graph_->AddNode(op_type, inputs, outputs, attributes);
}

std::string NodeWriter::EmitIntermediate(const std::string& op_type, const std::vector<std::string>& inputs,
                                         const OnnxAttributes& attributes) {
  std::string name = graph_->names_.Fresh("tensor");
  graph_->AddNode(op_type, inputs, {name}, attributes);
  return name;
}

bool NodeWriter::OutputIsUsed(size_t index) const { return graph_->use_counts_[step().outputs[index]] > 0; }

std::optional<std::string> NodeWriter::AbsorbBias(int64_t axis) {
  const size_t output = step().outputs[0];
  if (graph_->use_counts_[output] != 1 || graph_->is_result_[output]) return std::nullopt;
  const size_t user = graph_->last_user_[output];
  const OpSequence::Step& addition = graph_->sequence_.steps[user];
  if (addition.op->name != "nn.bias_add" || addition.inputs[0] != output) return std::nullopt;
  const int64_t rank = static_cast<int64_t>(OutputType().shape.size());
  const int64_t bias_axis = addition.attributes.Int("axis", 1).value_or(rank);
  if ((bias_axis < 0 ? bias_axis + rank : bias_axis) != axis) return std::nullopt;
  if (!graph_->sequence_.values[addition.inputs[1]].constant) return std::nullopt;
  graph_->absorbed_[user] = true;
  graph_->value_names_[output] = graph_->NameOf(addition.outputs[0]);
  return graph_->NameOf(addition.inputs[1]);
}

}  // namespace collage::onnx_io
