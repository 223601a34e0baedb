#include "collage/onnx/upgrade.h"

#include <algorithm>
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

  /// An attribute of integers that is an input now.
  void MakeInput(std::string_view name, int index) {
    const std::optional<AttributeProto> attribute = Take(name);
    if (!attribute) return;
    std::vector<int64_t> values(attribute->ints().begin(), attribute->ints().end());
    if (attribute->type() == AttributeProto::INT) values = {attribute->i()};
    SetInput(index, Constant(Tensor::FromVector(TensorType{{static_cast<int64_t>(values.size())}, DType::kInt64}, values)));
  }

  /// A number that is an input now, of the type of the first input.
  void MakeNumber(std::string_view name, int index) {
    const std::optional<AttributeProto> attribute = Take(name);
    if (attribute) SetInput(index, Before("CastLike", {Constant(Tensor::Scalar(attribute->f(), DType::kFloat32)), node_.input(0)}));
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

Status UpgradeSlice(Upgraded& node) {
  node.MakeInput("starts", 1);
  node.MakeInput("ends", 2);
  node.MakeInput("axes", 3);
  return {};
}

Status UpgradeTopK(Upgraded& node) {
  node.MakeInput("k", 1);
  return {};
}

Status UpgradeClip(Upgraded& node) {
  node.MakeNumber("min", 1);
  node.MakeNumber("max", 2);
  return {};
}

Status UpgradePad(Upgraded& node) {
  node.MakeInput("pads", 1);
  node.MakeNumber("value", 2);
  return {};
}

Status UpgradeDropout(Upgraded& node) {
  node.Take("ratio");  // of training
  return {};
}

Status UpgradeAxes(Upgraded& node) {
  node.MakeInput("axes", 1);
  return {};
}

Status UpgradeSplit(Upgraded& node) {
  node.MakeInput("split", 1);
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
  Status (*upgrade)(Upgraded&);
};

// What is not here takes more types or attributes in a younger operator set, and means the same without them.
constexpr Change kChanges[] = {
    {"Scan", 9, Refuse},
    {"BatchNormalization", 9, UpgradeSpatial},
    {"Upsample", 10, UpgradeUpsample},
    {"Slice", 10, UpgradeSlice},
    {"TopK", 10, UpgradeTopK},
    {"Resize", 11, UpgradeResize},
    {"Clip", 11, UpgradeClip},
    {"Pad", 11, UpgradePad},
    {"Scatter", 11, UpgradeScatter},
    {"Dropout", 12, UpgradeDropout},
    {"ReduceSum", 13, UpgradeAxes},
    {"Squeeze", 13, UpgradeAxes},
    {"Unsqueeze", 13, UpgradeAxes},
    {"Split", 13, UpgradeSplit},
    {"Softmax", 13, UpgradeSoftmax},
    {"LogSoftmax", 13, UpgradeSoftmax},
    {"Hardmax", 13, UpgradeSoftmax},
    {"RoiAlign", 16, UpgradeRoiAlign},
    {"ReduceL1", 18, UpgradeAxes},
    {"ReduceL2", 18, UpgradeAxes},
    {"ReduceLogSum", 18, UpgradeAxes},
    {"ReduceLogSumExp", 18, UpgradeAxes},
    {"ReduceMax", 18, UpgradeAxes},
    {"ReduceMean", 18, UpgradeAxes},
    {"ReduceMin", 18, UpgradeAxes},
    {"ReduceProd", 18, UpgradeAxes},
    {"ReduceSumSquare", 18, UpgradeAxes},
    {"Split", 18, CountSplit},
    {"GridSample", 20, UpgradeGridSample},
    {"DFT", 20, UpgradeDft},
    {"GroupNormalization", 21, Refuse},
};

Status UpgradeNode(int64_t from, int64_t to, NodeProto& message, NameSupply& names, onnx_message::GraphProto& graph) {
  // A change may make another node of it, which is of the younger form.
  const std::string op_type = message.op_type();
  Upgraded node(message, names, graph);
  for (const Change& change : kChanges) {
    if (!message.domain().empty() || change.op_type != op_type || from >= change.since || to < change.since) continue;
    const Status status = change.upgrade(node);
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
