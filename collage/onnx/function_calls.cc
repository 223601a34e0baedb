#include "collage/onnx/function_calls.h"

#include <unordered_map>

#include "onnx_message.pb.h"

namespace collage::onnx_io {
namespace {

using onnx_message::AttributeProto;
using onnx_message::FunctionProto;
using onnx_message::NodeProto;

// Exporters nest functions a few levels deep; a circle is found here.
constexpr int kDeepestCall = 100;
constexpr size_t kMostNodes = 1000000;

std::string WithoutAlias(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

/// The attribute of a call, or the function's default; null where there is neither.
const AttributeProto* ActualAttribute(const NodeProto& call, const FunctionProto& function, const std::string& name) {
  for (const AttributeProto& attribute : call.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  for (const AttributeProto& attribute : function.attribute_proto()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

/// The values of one call: parameters go by the names that the caller has for them, all others get names of their own.
class Names {
 public:
  Names(const NodeProto& call, const FunctionProto& function, std::string prefix) : prefix_(std::move(prefix)) {
    for (int i = 0; i < function.input_size(); ++i) names_[function.input(i)] = i < call.input_size() ? call.input(i) : "";
    for (int i = 0; i < function.output_size(); ++i) {
      if (i < call.output_size() && !call.output(i).empty()) names_[function.output(i)] = call.output(i);
    }
  }

  [[nodiscard]] std::string Of(const std::string& name) const {
    if (name.empty()) return name;
    const auto found = names_.find(name);
    return found == names_.end() ? prefix_ + name : found->second;
  }

 private:
  std::string prefix_;
  std::unordered_map<std::string, std::string> names_;
};

/// The nodes of one call of a function.
class Instance {
 public:
  Instance(const NodeProto& call, const FunctionProto& function, std::string prefix)
      : call_(call), function_(function), names_(call, function, std::move(prefix)) {}

  [[nodiscard]] std::shared_ptr<const NodeProto> Node(int index) const {
    auto message = std::make_shared<NodeProto>();
    NodeProto& result = *message;
    const NodeProto& node = function_.node(index);
    result.set_op_type(node.op_type());
    result.set_domain(node.domain());
    const std::string caller = call_.name().empty() ? call_.op_type() : call_.name();
    result.set_name(caller + "/" + (node.name().empty() ? std::to_string(index) : node.name()));
    FillNode(node, result);
    return message;
  }

 private:
  void FillNode(const NodeProto& node, NodeProto& result) const {
    for (const std::string& input : node.input()) result.add_input(names_.Of(input));
    for (const std::string& output : node.output()) result.add_output(names_.Of(output));
    for (const AttributeProto& attribute : node.attribute()) {
      if (attribute.ref_attr_name().empty()) {
        AttributeProto& copy = *result.add_attribute();
        copy = attribute;
        if (attribute.has_g()) Rename(*copy.mutable_g());
        continue;
      }
      const AttributeProto* actual = ActualAttribute(call_, function_, attribute.ref_attr_name());
      if (actual == nullptr) continue;
      AttributeProto& copy = *result.add_attribute();
      copy = *actual;
      copy.set_name(attribute.name());
    }
  }

  /// A body names values of the function around it; its own get new names, too. As deep as bodies nest.
  void Rename(onnx_message::GraphProto& graph) const {
    for (auto& tensor : *graph.mutable_initializer()) tensor.set_name(names_.Of(tensor.name()));
    for (auto* values : {graph.mutable_input(), graph.mutable_output()}) {
      for (auto& value : *values) value.set_name(names_.Of(value.name()));
    }
    for (NodeProto& node : *graph.mutable_node()) {
      NodeProto renamed;
      renamed.set_op_type(node.op_type());
      renamed.set_domain(node.domain());
      renamed.set_name(node.name());
      FillNode(node, renamed);
      node.Swap(&renamed);
    }
  }

  const NodeProto& call_;
  const FunctionProto& function_;
  Names names_;
};

int64_t OpsetOf(const FunctionProto& function, int64_t fallback) {
  for (const auto& import : function.opset_import()) {
    if (WithoutAlias(import.domain()).empty()) return import.version();
  }
  return fallback;
}

}  // namespace

FunctionCalls::FunctionCalls(const onnx_message::ModelProto& model) {
  for (const FunctionProto& function : model.functions()) {
    functions_.emplace(std::pair(WithoutAlias(function.domain()), function.name()), &function);
  }
}

const FunctionProto* FunctionCalls::Find(const NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find({WithoutAlias(node.domain()), node.op_type()});
  return found == functions_.end() ? nullptr : found->second;
}

Result<std::vector<FunctionCalls::Expanded>> FunctionCalls::Expand(const NodeProto& root, int64_t opset) {
  struct Pending {
    Expanded expanded;
    int depth;
  };
  std::vector<Expanded> result;
  std::vector<Pending> stack{{{std::make_shared<NodeProto>(root), opset}, 0}};
  while (!stack.empty()) {
    Pending pending = std::move(stack.back());
    stack.pop_back();
    const NodeProto& call = *pending.expanded.node;
    const FunctionProto* function = Find(call);
    if (function == nullptr) {
      result.push_back(std::move(pending.expanded));
      continue;
    }
    if (pending.depth == kDeepestCall)
      return Fail("functions of the model call each other more than " + std::to_string(kDeepestCall) + " levels deep");
    nodes_ += static_cast<size_t>(function->node_size());
    if (nodes_ > kMostNodes) return Fail("the functions of the model expand to more than " + std::to_string(kMostNodes) + " nodes");
    const Instance instance(call, *function, call.op_type() + "#" + std::to_string(calls_++) + "/");
    const int64_t inner = OpsetOf(*function, pending.expanded.opset);
    for (int i = function->node_size(); i-- > 0;) {
      stack.push_back({{instance.Node(i), inner}, pending.depth + 1});
    }
  }
  return result;
}

}  // namespace collage::onnx_io
