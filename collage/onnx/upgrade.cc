#include "collage/onnx/upgrade.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collage/onnx/attribute_message.h"
#include "onnx_message.pb.h"

namespace collage::onnx_io {
namespace {

using onnx_message::AttributeProto;
using onnx_message::NodeProto;

/// What was an attribute and is an input now: integers, or a number of the type of the first input.
struct AttributeAsInput {
  std::string_view attribute;
  int index = 0;
  bool is_number = false;
};

/// One node, and those that are put around it.
class Upgraded {
 public:
  Upgraded(NodeProto& node, NameSupply& names, onnx_message::GraphProto& graph) : node_(node), names_(names), graph_(graph) {}

  NodeProto& node() { return node_; }
  [[nodiscard]] bool HasInput(int index) const { return index < node_.input_size() && !node_.input(index).empty(); }

  std::optional<AttributeProto> Take(std::string_view name) {
    auto& attributes = *node_.mutable_attribute();
    const auto found = std::find_if(attributes.begin(), attributes.end(), [&](const AttributeProto& one) { return one.name() == name; });
    if (found == attributes.end()) return std::nullopt;
    AttributeProto taken = *found;
    attributes.erase(found);
    return taken;
  }

  [[nodiscard]] bool Has(std::string_view name) const {
    return std::any_of(node_.attribute().begin(), node_.attribute().end(), [&](const AttributeProto& one) { return one.name() == name; });
  }

  void Set(const std::string& name, const OnnxAttribute& value) { SetOn(node_, name, value); }

  void SetInput(int index, const std::string& name) {
    while (node_.input_size() <= index) node_.add_input("");
    node_.set_input(index, name);
  }

  /// A node in front of this one; the name of what it gives.
  std::string Before(const std::string& op_type, const std::vector<std::string>& inputs, const OnnxAttributes& attributes = {}) {
    return Put(op_type, inputs, attributes, *graph_.add_node());
  }

  std::string Constant(const Tensor& value) { return Before("Constant", {}, {{"value", value}}); }

  void MakeInput(const AttributeAsInput& input) {
    const std::optional<AttributeProto> attribute = Take(input.attribute);
    if (!attribute) return;
    if (input.is_number) {
      const std::string number = Constant(Tensor::Scalar(attribute->f(), DType::kFloat32));
      return SetInput(input.index, Before("CastLike", {number, node_.input(0)}));
    }
    std::vector<int64_t> values(attribute->ints().begin(), attribute->ints().end());
    if (attribute->type() == AttributeProto::INT) values = {attribute->i()};
    SetInput(input.index, Constant(Tensor::FromVector(TensorType{{static_cast<int64_t>(values.size())}, DType::kInt64}, values)));
  }

 private:
  static void SetOn(NodeProto& node, const std::string& name, const OnnxAttribute& value) {
    const Status status = SetAttribute(name, value, *node.add_attribute());
    COLLAGE_CHECK(status.has_value(), "these have a written form");
  }

  std::string Put(const std::string& op_type, const std::vector<std::string>& inputs, const OnnxAttributes& attributes, NodeProto& node) {
    std::string name = names_.Fresh("upgraded");
    node.set_op_type(op_type);
    node.set_name(name);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(name);
    for (const auto& [key, value] : attributes) SetOn(node, key, value);
    return name;
  }

  NodeProto& node_;
  NameSupply& names_;
  onnx_message::GraphProto& graph_;
};

Status UpgradeDropout(Upgraded& node) {
  node.Take("ratio");  // of training
  return {};
}

Status CountSplit(Upgraded& node) {
  if (!node.HasInput(1) && !node.Has("num_outputs")) node.Set("num_outputs", int64_t{node.node().output_size()});
  return {};
}

/// Over all dimensions from the axis on, which a matrix has as its rows.
Status UpgradeSoftmax(Upgraded& node) {
  const std::optional<AttributeProto> axis = node.Take("axis");
  NodeProto& message = node.node();
  const std::string shape = node.Before("Shape", {message.input(0)});
  const std::string rows = node.Before("Flatten", {message.input(0)}, {{"axis", axis ? axis->i() : int64_t{1}}});
  const std::string normal = node.Before(message.op_type(), {rows}, {{"axis", int64_t{-1}}});
  message.set_op_type("Reshape");
  node.SetInput(0, normal);
  node.SetInput(1, shape);
  return {};
}

/// As Resize of opset 10 and Upsample mean it.
void SayWhereElementsLie(Upgraded& node) {
  node.Set("coordinate_transformation_mode", std::string("asymmetric"));
  node.Set("nearest_mode", std::string("floor"));
}

Status UpgradeResize(Upgraded& node) {
  node.SetInput(2, node.node().input(1));
  node.SetInput(1, "");
  SayWhereElementsLie(node);
  return {};
}

Status UpgradeUpsample(Upgraded& node) {
  node.node().set_op_type("Resize");
  if (const std::optional<AttributeProto> scales = node.Take("scales")) {
    const std::vector<float> values(scales->floats().begin(), scales->floats().end());
    node.SetInput(1, node.Constant(Tensor::FromVector(TensorType{{static_cast<int64_t>(values.size())}, DType::kFloat32}, values)));
  }
  return UpgradeResize(node);
}

Status UpgradeRoiAlign(Upgraded& node) {
  if (!node.Has("coordinate_transformation_mode")) node.Set("coordinate_transformation_mode", std::string("output_half_pixel"));
  return {};
}

Status UpgradeScatter(Upgraded& node) {
  node.node().set_op_type("ScatterElements");
  return {};
}

Status UpgradeSpatial(Upgraded& node) {
  const std::optional<AttributeProto> spatial = node.Take("spatial");
  return spatial && spatial->i() == 0 ? Fail("attribute 'spatial' is 0") : Status{};
}

Status UpgradeGridSample(Upgraded& node) {
  const std::optional<AttributeProto> mode = node.Take("mode");
  if (mode) node.Set("mode", std::string(mode->s() == "bilinear" ? "linear" : mode->s() == "bicubic" ? "cubic" : mode->s()));
  return {};
}

Status UpgradeDft(Upgraded& node) {
  const std::optional<AttributeProto> axis = node.Take("axis");
  node.SetInput(2, node.Constant(Tensor::Scalar(axis ? axis->i() : int64_t{1}, DType::kInt64)));
  return {};
}

Status Refuse(Upgraded&) { return Fail("its meaning has changed"); }

struct Change {
  std::string_view op_type;
  int64_t since;
  std::array<AttributeAsInput, 3> inputs = {};  ///< those that have names
  Status (*upgrade)(Upgraded&) = nullptr;       ///< what else has changed
};

constexpr std::array<AttributeAsInput, 3> kAxes = {{{"axes", 1}}};

// What is not here takes more types or attributes in a younger operator set, and means the same without them.
constexpr Change kChanges[] = {
    {"Scan", 9, {}, Refuse},
    {"BatchNormalization", 9, {}, UpgradeSpatial},
    {"Upsample", 10, {}, UpgradeUpsample},
    {"Slice", 10, {{{"starts", 1}, {"ends", 2}, {"axes", 3}}}},
    {"TopK", 10, {{{"k", 1}}}},
    {"Resize", 11, {}, UpgradeResize},
    {"Clip", 11, {{{"min", 1, true}, {"max", 2, true}}}},
    {"Pad", 11, {{{"pads", 1}, {"value", 2, true}}}},
    {"Scatter", 11, {}, UpgradeScatter},
    {"Dropout", 12, {}, UpgradeDropout},
    {"ReduceSum", 13, kAxes},
    {"Squeeze", 13, kAxes},
    {"Unsqueeze", 13, kAxes},
    {"Split", 13, {{{"split", 1}}}},
    {"Softmax", 13, {}, UpgradeSoftmax},
    {"LogSoftmax", 13, {}, UpgradeSoftmax},
    {"Hardmax", 13, {}, UpgradeSoftmax},
    {"RoiAlign", 16, {}, UpgradeRoiAlign},
    {"ReduceL1", 18, kAxes},
    {"ReduceL2", 18, kAxes},
    {"ReduceLogSum", 18, kAxes},
    {"ReduceLogSumExp", 18, kAxes},
    {"ReduceMax", 18, kAxes},
    {"ReduceMean", 18, kAxes},
    {"ReduceMin", 18, kAxes},
    {"ReduceProd", 18, kAxes},
    {"ReduceSumSquare", 18, kAxes},
    {"Split", 18, {}, CountSplit},
    {"GridSample", 20, {}, UpgradeGridSample},
    {"DFT", 20, {}, UpgradeDft},
    {"GroupNormalization", 21, {}, Refuse},
};

Status UpgradeNode(int64_t from, int64_t to, NodeProto& message, NameSupply& names, onnx_message::GraphProto& graph) {
  // A change may make another node of it, which is of the younger form.
  const std::string op_type = message.op_type();
  Upgraded node(message, names, graph);
  for (const Change& change : kChanges) {
    if (!message.domain().empty() || change.op_type != op_type || from >= change.since || to < change.since) continue;
    for (const AttributeAsInput& input : change.inputs) {
      if (!input.attribute.empty()) node.MakeInput(input);
    }
    const Status status = change.upgrade == nullptr ? Status{} : change.upgrade(node);
    if (!status) {
      return Fail("node '" + message.name() + "' (" + op_type + ", opset " + std::to_string(from) + "): has no form in opset " +
                  std::to_string(to) + ", in which the partitions are written: " + status.error().message);
    }
  }
  return {};
}

}  // namespace

/// Recursion is as deep as bodies nest, which the message parser bounds.
Status UpgradeNodes(int64_t from, int64_t to, NameSupply& names, onnx_message::GraphProto& graph) {
  if (from == to) return {};
  if (from < kOldestUpgraded) {
    return Fail("the nodes behind extents that depend on data are of opset " + std::to_string(from) +
                ", which cannot be written beside opset " + std::to_string(to) + "; a model of opset " + std::to_string(kOldestUpgraded) +
                " or younger can");
  }
  auto nodes = std::move(*graph.mutable_node());
  graph.clear_node();
  for (NodeProto& node : nodes) {
    for (AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) COLLAGE_TRY_STATUS(UpgradeNodes(from, to, names, *attribute.mutable_g()));
    }
    COLLAGE_TRY_STATUS(UpgradeNode(from, to, node, names, graph));
    graph.add_node()->Swap(&node);
  }
  return {};
}

}  // namespace collage::onnx_io
