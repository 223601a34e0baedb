#include "collage/onnx/partitioned.h"

#include <algorithm>
#include <map>

#include "collage/ir/visit.h"
#include "collage/onnx/control_graph.h"
#include "collage/onnx/control_writer.h"
#include "collage/onnx/partition_writer.h"
#include "collage/onnx/upgrade.h"
#include "onnx_message.pb.h"

namespace collage {
namespace {

using onnx_io::ControlGraph;
using onnx_io::ControlWriter;
using onnx_io::GraphScope;
using onnx_io::PartitionWriter;

// The first in which nodes have metadata.
constexpr int64_t kIrVersionOfRemarks = 10;

bool HasStrings(const PartitionedBlock& block) {
  bool found = false;
  for (const PartitionedBlock::Value& value : block.values) found = found || value.type.dtype == DType::kString;
  for (const PartitionedBlock::Call& call : block.calls) {
    PostOrder(call.function, [&](const Expr& expr) {
      for (const TensorType& type : FlattenTensors(expr->type())) found = found || type.dtype == DType::kString;
    });
  }
  return found;
}

/// All functions are of one operator set, as a checker wants it: whose operators mean the same as in that of the model.
int64_t OpsetOf(const PartitionedModel& model, int64_t opset_of_remainder) {
  int64_t opset = std::max(kWrittenOpset, opset_of_remainder);
  for (const PartitionedBlock& block : model.blocks) {
    if (HasStrings(block)) opset = std::max(opset, kOpsetOfStrings);
    for (const PartitionedBlock::Call& call : block.calls) opset = std::max(opset, WrittenOpset(call.function));
  }
  return opset;
}

void ReserveNames(const onnx_message::GraphProto& graph, NameSupply& names) {
  for (const auto* values : {&graph.input(), &graph.output()}) {
    for (const onnx_message::ValueInfoProto& value : *values) names.Reserve(value.name());
  }
  for (const onnx_message::TensorProto& tensor : graph.initializer()) names.Reserve(tensor.name());
  for (const onnx_message::NodeProto& node : graph.node()) {
    for (const std::string& output : node.output()) names.Reserve(output);
    for (const onnx_message::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) ReserveNames(attribute.g(), names);
    }
  }
}

class Writer {
 public:
  explicit Writer(const PartitionedModel& model) : model_(model) {}

  Result<PartitionedForm> Write() {
    if (model_.remainder) COLLAGE_TRY_STATUS(OpenRemainder());
    WriteOptions options;
    options.is_complete = true;
    options.opset = OpsetOf(model_, imports_[""]);
    PartitionWriter parts(options, model_.nodes);
    ReserveAll(parts);
    const ControlGraph graph = COLLAGE_TRY(ControlGraph::Of(model_));
    ControlWriter control(model_, graph, parts);
    COLLAGE_TRY_STATUS(control.WriteSharedFunctions());
    COLLAGE_TRY_STATUS(WriteHead(control, parts));
    if (model_.remainder) COLLAGE_TRY_STATUS(WriteRemainder(parts));
    return Finish(parts);
  }

 private:
  Status OpenRemainder() {
    if (!remainder_.ParseFromString(model_.remainder->message)) return Fail("what lies behind extents that depend on data is no model");
    for (const auto& import : remainder_.opset_import()) imports_[import.domain()] = import.version();
    return {};
  }

  void ReserveAll(PartitionWriter& parts) {
    for (const auto* names : {&model_.input_names, &model_.output_names}) {
      for (const std::string& name : *names) parts.names().Reserve(name);
    }
    if (!model_.remainder) return;
    ReserveNames(remainder_.graph(), parts.names());
    for (const Remainder::Input& input : model_.remainder->inputs) parts.names().Reserve(input.name);
    for (const auto& [name, value] : model_.remainder->weights) {
      parts.names().Reserve(name);
      parts.AddNamedWeight(name, value);
    }
  }

  /// Names of what the head gives: outputs, or what the remainder reads.
  std::vector<std::string> ResultNames(PartitionWriter& parts) {
    if (!model_.remainder) return model_.output_names;
    std::vector<std::string> names;
    for (const Remainder::Input& input : model_.remainder->inputs) {
      if (!input.length) names.push_back(input.name);
      for (size_t i = 0; i < input.length.value_or(0); ++i) names.push_back(parts.names().Fresh(input.name + "_" + std::to_string(i)));
    }
    return names;
  }

  Status WriteHead(ControlWriter& control, PartitionWriter& parts) {
    const PartitionedModel::Function& entry = model_.functions[model_.entry];
    result_names_ = ResultNames(parts);
    if (entry.parameters != model_.input_names.size() || entry.results.size() != result_names_.size())
      return Fail("@" + entry.name + " has another number of inputs or outputs than there are names for");
    for (size_t i = 0; i < entry.parameters; ++i) SetInfo(model_.input_names[i], entry.types[i], *graph_.add_input());
    const std::vector<std::string> given = COLLAGE_TRY(control.WriteCall(model_.entry, model_.input_names, result_names_, scope_));
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i] != result_names_[i]) parts.AddNode("Identity", "identity_" + result_names_[i], {given[i]}, {result_names_[i]}, scope_);
      if (!model_.remainder) SetInfo(result_names_[i], entry.types[entry.results[i]], *graph_.add_output());
    }
    return {};
  }

  Status WriteRemainder(PartitionWriter& parts) {
    size_t next = 0;
    for (const Remainder::Input& input : model_.remainder->inputs) {
      const size_t begin = next;
      next += input.length.value_or(1);
      if (!input.length) continue;
      if (*input.length == 0) return Fail("'" + input.name + "' is a sequence without tensors, whose type nothing says");
      const std::vector<std::string> tensors(result_names_.begin() + static_cast<ptrdiff_t>(begin),
                                             result_names_.begin() + static_cast<ptrdiff_t>(next));
      parts.AddNode("SequenceConstruct", "sequence_" + input.name, tensors, {input.name}, scope_);
    }
    onnx_message::GraphProto& rest = *remainder_.mutable_graph();
    COLLAGE_TRY_STATUS(onnx_io::UpgradeNodes(imports_[""], parts.opset(), parts.names(), rest));
    for (onnx_message::NodeProto& node : *rest.mutable_node()) graph_.add_node()->Swap(&node);
    graph_.mutable_output()->Swap(rest.mutable_output());
    return {};
  }

  Result<PartitionedForm> Finish(PartitionWriter& parts) {
    onnx_message::ModelProto proto;
    proto.set_ir_version(kIrVersionOfRemarks);
    proto.set_producer_name("collage");
    imports_[""] = parts.opset();
    imports_[kPartitionDomain] = 1;
    for (const std::string& domain : parts.domains()) imports_.emplace(domain, 1);
    for (const auto& [domain, version] : imports_) {
      auto& import = *proto.add_opset_import();
      import.set_domain(domain);
      import.set_version(version);
    }
    for (const onnx_message::FunctionProto& function : parts.functions()) *proto.add_functions() = function;
    graph_.set_name("partitioned");
    return PartitionedForm{COLLAGE_TRY(onnx_io::ModelBytes(proto, graph_, parts.initializers())), parts.partitions(),
                           parts.functions().size()};
  }

  static void SetInfo(const std::string& name, const TensorType& type, onnx_message::ValueInfoProto& info) {
    info.set_name(name);
    onnx_io::SetType(type, info);
  }

  const PartitionedModel& model_;
  onnx_message::GraphProto graph_;
  GraphScope scope_{graph_};
  onnx_message::ModelProto remainder_;
  std::map<std::string, int64_t> imports_;  // versions of operator sets by their domains
  std::vector<std::string> result_names_;   // of what the head gives
};

}  // namespace

Result<PartitionedForm> WritePartitioned(const PartitionedModel& model) { return Writer(model).Write(); }

}  // namespace collage
