#include "collage/onnx/partitioned.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "collage/ir/op_sequence.h"
#include "collage/ir/visit.h"
#include "collage/onnx/attribute_message.h"
#include "collage/onnx/graph_writer.h"
#include "collage/onnx/model_bytes.h"
#include "collage/onnx/writer.h"
#include "collage/support/name_supply.h"
#include "onnx_message.pb.h"

namespace collage {
namespace {

using onnx_io::NamedTensor;

// The first in which nodes have metadata.
constexpr int64_t kIrVersionOfRemarks = 10;

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
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name.empty() ? "identity" : name;
}

class Writer {
 public:
  explicit Writer(const PartitionedModel& model) : model_(model), value_names_(model.values.size()) {
    options_.is_complete = true;
    // All functions are of one operator set, as a checker wants it.
    if (HasStrings()) options_.opset = kOpsetOfStrings;
    for (const PartitionedModel::Call& call : model.calls) options_.opset = std::max(options_.opset, WrittenOpset(call.function));
  }

  Result<PartitionedForm> Write() {
    COLLAGE_TRY_STATUS(NameInputs());
    for (const PartitionedModel::Endpoint& output : model_.outputs) {
      names_.Reserve(output.name);
      output_names_.emplace(output.value, output.name);
    }
    for (const PartitionedModel::Call& call : model_.calls) {
      Status status = WriteCall(call);
      if (!status) return Fail(status.error().At(call.name));
    }
    COLLAGE_TRY_STATUS(WriteOutputs());
    proto_.set_ir_version(kIrVersionOfRemarks);
    proto_.set_producer_name("collage");
    AddImport("", options_.opset);
    AddImport(kPartitionDomain, 1);
    for (const std::string& domain : domains_) AddImport(domain, 1);
    graph_.set_name("partitioned");
    PartitionedForm form{COLLAGE_TRY(onnx_io::ModelBytes(proto_, graph_, initializers_)), functions_.size()};
    return form;
  }

 private:
  void AddImport(const std::string& domain, int64_t version) {
    auto& import = *proto_.add_opset_import();
    import.set_domain(domain);
    import.set_version(version);
  }

  [[nodiscard]] bool HasStrings() const {
    bool found = false;
    for (const PartitionedModel::Value& value : model_.values) found = found || value.type.dtype == DType::kString;
    for (const PartitionedModel::Call& call : model_.calls) {
      PostOrder(call.function, [&](const Expr& expr) {
        for (const TensorType& type : FlattenTensors(expr->type())) found = found || type.dtype == DType::kString;
      });
    }
    return found;
  }

  Status NameInputs() {
    for (const PartitionedModel::Endpoint& input : model_.inputs) {
      COLLAGE_TRY_STATUS(Define(input.value, input.name));
      names_.Reserve(input.name);
      onnx_message::ValueInfoProto& info = *graph_.add_input();
      info.set_name(input.name);
      onnx_io::SetType(model_.values[input.value].type, info);
    }
    return {};
  }

  Status Define(size_t value, const std::string& name) {
    if (value >= value_names_.size()) return Fail("value " + std::to_string(value) + " is not there");
    if (!value_names_[value].empty()) return Fail("value " + std::to_string(value) + " is given twice");
    value_names_[value] = name;
    return {};
  }

  /// Of a value that is read. What is moved becomes a node where it is first needed; it is of earlier values, so this loop ends.
  Result<std::string> NameOf(size_t value) {
    std::vector<size_t> open = {value};
    while (!open.empty()) {
      const size_t at = open.back();
      if (at >= value_names_.size()) return Fail("value " + std::to_string(at) + " is not there");
      const PartitionedModel::Value& description = model_.values[at];
      const size_t before = open.size();
      if (value_names_[at].empty() && description.constant) value_names_[at] = AddWeight("constant", *description.constant);
      if (value_names_[at].empty()) {
        if (!description.moved) return Fail("value " + std::to_string(at) + " is used before it is there");
        for (const size_t source : description.moved->of) {
          if (source >= at) return Fail("value " + std::to_string(at) + " is used before it is there");
          if (value_names_[source].empty()) open.push_back(source);
        }
        if (open.size() == before) WriteMoved(at);
      }
      if (open.size() == before) open.pop_back();
    }
    return value_names_[value];
  }

  void WriteMoved(size_t value) {
    const PartitionedModel::Moved& moved = *model_.values[value].moved;
    value_names_[value] = names_.Fresh("view");
    onnx_message::NodeProto& node = *graph_.add_node();
    for (const size_t source : moved.of) node.add_input(value_names_[source]);
    node.add_output(value_names_[value]);
    const auto set_type = [&](const std::string& type, const std::string& prefix) {
      node.set_op_type(type);
      node.set_name(prefix + value_names_[value]);
    };
    switch (moved.kind) {
      case PartitionedModel::Moved::Kind::kReshape:
        set_type("Reshape", "reshape_");
        return AddShape(model_.values[value].type.shape, node);
      case PartitionedModel::Moved::Kind::kConcat:
        set_type("Concat", "concat_");
        return AddInt("axis", moved.axis, node);
      case PartitionedModel::Moved::Kind::kSlice:
        set_type("Slice", "slice_");
        const int64_t end = moved.begin + model_.values[value].type.shape[static_cast<size_t>(moved.axis)];
        for (const auto& [name, number] : {std::pair("starts", moved.begin), std::pair("ends", end), std::pair("axes", moved.axis)})
          node.add_input(AddWeight(name, Tensor::FromVector(TensorType{{1}, DType::kInt64}, std::vector<int64_t>{number})));
    }
  }

  void AddShape(const Shape& shape, onnx_message::NodeProto& node) {
    const TensorType type{{static_cast<int64_t>(shape.size())}, DType::kInt64};
    node.add_input(AddWeight("shape", Tensor::FromVector(type, shape)));
    // Otherwise zero means the extent of what is reshaped.
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) AddInt("allowzero", 1, node);
  }

  static void AddInt(const std::string& name, int64_t value, onnx_message::NodeProto& node) {
    onnx_message::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx_message::AttributeProto::INT);
    attribute.set_i(value);
  }

  std::string AddWeight(const std::string& hint, const Tensor& value) {
    std::string& name = weights_[{value.Bytes(), value.dtype(), value.shape()}];
    if (!name.empty()) return name;
    name = names_.Fresh(hint);
    initializers_.emplace_back(name, value);
    return name;
  }

  /// The name of the function that computes `call`, which is written unless there is an equal one.
  Result<std::string> FunctionOf(const PartitionedModel::Call& call, std::vector<NamedTensor>& weights) {
    const Function* function = call.function->As<Function>();
    if (!function) return Fail("is no function");
    const OpSequence sequence = COLLAGE_TRY(ToOpSequence(*function));
    if (sequence.parameters.size() != call.inputs.size() || sequence.results.size() != call.outputs.size())
      return Fail("its function has another number of inputs or outputs than its call");
    onnx_message::FunctionProto written;
    COLLAGE_TRY_STATUS(onnx_io::GraphWriter(sequence, options_).WriteFunction(written, weights));
    std::string& name = functions_[written.SerializeAsString()];
    if (!name.empty()) return name;
    name = function_names_.Fresh(FunctionName(sequence));
    for (const auto& import : written.opset_import()) {
      if (!import.domain().empty()) domains_.insert(import.domain());
    }
    written.set_name(name);
    written.set_domain(kPartitionDomain);
    proto_.add_functions()->Swap(&written);
    return name;
  }

  Status WriteCall(const PartitionedModel::Call& call) {
    onnx_message::NodeProto node;
    std::vector<NamedTensor> weights;
    node.set_op_type(COLLAGE_TRY(FunctionOf(call, weights)));
    node.set_domain(kPartitionDomain);
    node.set_name(node_names_.Fresh(call.name));
    for (const size_t input : call.inputs) node.add_input(COLLAGE_TRY(NameOf(input)));
    for (const auto& [name, value] : weights) node.add_input(AddWeight(node.name() + "." + name, value));
    for (const size_t output : call.outputs) {
      const std::string name = NameOfOutput(output);
      COLLAGE_TRY_STATUS(Define(output, name));
      node.add_output(name);
    }
    for (const auto& [key, value] : call.remarks) {
      auto& entry = *node.add_metadata_props();
      entry.set_key(key);
      entry.set_value(value);
    }
    graph_.add_node()->Swap(&node);
    return {};
  }

  /// The model's name of what it gives; a tensor in between has none, and its type is told for those who look.
  std::string NameOfOutput(size_t value) {
    const auto output = output_names_.find(value);
    if (output != output_names_.end()) return output->second;
    std::string name = names_.Fresh("tensor");
    if (value >= model_.values.size()) return name;
    onnx_message::ValueInfoProto& info = *graph_.add_value_info();
    info.set_name(name);
    onnx_io::SetType(model_.values[value].type, info);
    return name;
  }

  Status WriteOutputs() {
    for (const PartitionedModel::Endpoint& output : model_.outputs) {
      Result<std::string> name = NameOf(output.value);
      if (!name) return Fail(name.error().At("output '" + output.name + "'"));
      if (*name != output.name) {
        onnx_message::NodeProto& node = *graph_.add_node();
        node.set_name("identity_" + output.name);
        node.set_op_type("Identity");
        node.add_input(*name);
        node.add_output(output.name);
      }
      onnx_message::ValueInfoProto& info = *graph_.add_output();
      info.set_name(output.name);
      onnx_io::SetType(model_.values[output.value].type, info);
    }
    return {};
  }

  const PartitionedModel& model_;
  WriteOptions options_;
  onnx_message::ModelProto proto_;
  onnx_message::GraphProto graph_;
  NameSupply names_;
  NameSupply node_names_;
  NameSupply function_names_;
  std::vector<std::string> value_names_;                    // empty: not there yet
  std::unordered_map<size_t, std::string> output_names_;    // of values; the first where one is several outputs
  std::unordered_map<std::string, std::string> functions_;  // names by messages without names
  std::set<std::string> domains_;                           // of the nodes in them, but the default one
  // By place, type and shape: what a file holds once is stored once.
  std::map<std::tuple<const std::byte*, DType, Shape>, std::string> weights_;
  std::vector<NamedTensor> initializers_;
};

}  // namespace

Result<PartitionedForm> WritePartitioned(const PartitionedModel& model) { return Writer(model).Write(); }

}  // namespace collage
