#include "tests/fuzz/model_mutator.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <vector>

#include "onnx_message.pb.h"

namespace collage {
namespace {

using namespace onnx_message;  // NOLINT(google-build-using-namespace)

/// Numbers at which sums and products overflow, negative axes, and small ones that may even be right.
constexpr int64_t kOdd[] = {0,
                            1,
                            2,
                            3,
                            4,
                            5,
                            7,
                            8,
                            16,
                            17,
                            255,
                            1000,
                            65536,
                            -1,
                            -2,
                            -3,
                            -4,
                            -5,
                            -8,
                            -1000,
                            1LL << 30,
                            1LL << 31,
                            1LL << 32,
                            1LL << 40,
                            1LL << 62,
                            -(1LL << 31),
                            -(1LL << 62),
                            std::numeric_limits<int64_t>::max(),
                            std::numeric_limits<int64_t>::min()};

class Mutator {
 public:
  Mutator(ModelProto& model, std::mt19937_64& random) : model_(model), random_(random) {}

  void Mutate() {
    graph_ = model_.mutable_graph();
    // A body now and then, where there are any.
    for (int depth = 0; depth < 2 && Chance(2); ++depth) EnterBody();
    using Edit = void (Mutator::*)();
    constexpr Edit kEdits[] = {&Mutator::Attribute,   &Mutator::Attribute,   &Mutator::Attribute,  &Mutator::Extents,
                               &Mutator::Extents,     &Mutator::ElementType, &Mutator::NodeInput,  &Mutator::NodeInput,
                               &Mutator::NodeOutput,  &Mutator::TensorShape, &Mutator::TensorData, &Mutator::TensorValue,
                               &Mutator::TensorValue, &Mutator::Operator,    &Mutator::Opset,      &Mutator::Order,
                               &Mutator::Ends};
    (this->*kEdits[random_() % std::size(kEdits)])();
  }

 private:
  bool Chance(uint64_t one_in) { return random_() % one_in == 0; }
  int64_t Odd() { return kOdd[random_() % std::size(kOdd)]; }
  int Below(int count) { return static_cast<int>(random_() % static_cast<uint64_t>(count)); }

  void EnterBody() {
    std::vector<GraphProto*> bodies;
    for (NodeProto& node : *graph_->mutable_node()) {
      for (AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) bodies.push_back(attribute.mutable_g());
      }
    }
    if (!bodies.empty()) graph_ = bodies[random_() % bodies.size()];
  }

  NodeProto* Node() { return graph_->node_size() == 0 ? nullptr : graph_->mutable_node(Below(graph_->node_size())); }
  TensorProto* Initializer() {
    return graph_->initializer_size() == 0 ? nullptr : graph_->mutable_initializer(Below(graph_->initializer_size()));
  }
  ValueInfoProto* End() {
    const int inputs = graph_->input_size();
    const int all = inputs + graph_->output_size() + graph_->value_info_size();
    if (all == 0) return nullptr;
    const int at = Below(all);
    if (at < inputs) return graph_->mutable_input(at);
    if (at < inputs + graph_->output_size()) return graph_->mutable_output(at - inputs);
    return graph_->mutable_value_info(at - inputs - graph_->output_size());
  }

  /// Of a value somewhere in the graph, before or behind whoever asks.
  std::string ValueName() {
    std::vector<std::string> names = {"", "nobody"};
    for (const NodeProto& node : graph_->node()) names.insert(names.end(), node.output().begin(), node.output().end());
    for (const TensorProto& tensor : graph_->initializer()) names.push_back(tensor.name());
    for (const ValueInfoProto& input : graph_->input()) names.push_back(input.name());
    return names[random_() % names.size()];
  }

  template <class Repeated, class Make>
  void ChangeList(Repeated* list, const Make& make) {
    if (list->empty() || Chance(4)) {
      list->Add(make());
    } else if (Chance(4)) {
      list->Truncate(Below(list->size()));
    } else {
      list->Set(Below(list->size()), make());
    }
  }

  void Attribute() {
    NodeProto* node = Node();
    if (!node) return;
    if (node->attribute_size() == 0 || Chance(8)) {
      // One of another node, or a new one under a name that many operators have.
      constexpr const char* kNames[] = {"axis", "axes", "pads", "strides", "group", "kernel_shape", "to", "perm", "keepdims", "value"};
      AttributeProto* made = node->add_attribute();
      made->set_name(kNames[random_() % std::size(kNames)]);
      made->set_type(AttributeProto::INT);
      made->set_i(Odd());
      return;
    }
    const int at = Below(node->attribute_size());
    AttributeProto& attribute = *node->mutable_attribute(at);
    switch (random_() % 8) {
      case 0:
        node->mutable_attribute()->DeleteSubrange(at, 1);
        return;
      case 1:
        attribute.set_type(static_cast<AttributeProto::AttributeType>(random_() % 15));
        return;
      case 2:
        *node->add_attribute() = AttributeProto(attribute);
        return;
      default:
        ChangeValue(attribute);
    }
  }

  void ChangeValue(AttributeProto& attribute) {
    if (attribute.has_i()) attribute.set_i(Odd());
    if (attribute.has_f()) attribute.set_f(Chance(3) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(Odd()));
    if (attribute.has_s()) attribute.set_s(Chance(2) ? std::string() : attribute.s().substr(0, attribute.s().size() / 2) + "x");
    if (attribute.ints_size() > 0) ChangeList(attribute.mutable_ints(), [&] { return Odd(); });
    if (attribute.floats_size() > 0) ChangeList(attribute.mutable_floats(), [&] { return static_cast<float>(Odd()); });
    if (attribute.strings_size() > 0) attribute.mutable_strings()->DeleteSubrange(0, 1);
    if (attribute.has_t()) ChangeTensor(*attribute.mutable_t());
  }

  void Extents() {
    ValueInfoProto* end = End();
    if (!end) return;
    TensorShapeProto* shape = end->mutable_type()->mutable_tensor_type()->mutable_shape();
    if (shape->dim_size() == 0 || Chance(5)) {
      shape->add_dim()->set_dim_value(Odd());
    } else if (Chance(5)) {
      shape->mutable_dim()->DeleteSubrange(Below(shape->dim_size()), 1);
    } else if (Chance(6)) {
      shape->mutable_dim(Below(shape->dim_size()))->set_dim_param("N");
    } else {
      shape->mutable_dim(Below(shape->dim_size()))->set_dim_value(Odd());
    }
  }

  void ElementType() {
    if (ValueInfoProto* end = End()) end->mutable_type()->mutable_tensor_type()->set_elem_type(Below(28));
  }

  void NodeInput() {
    NodeProto* node = Node();
    if (!node || node->input_size() == 0) return;
    const int at = Below(node->input_size());
    switch (random_() % 5) {
      case 0:
        node->mutable_input()->SwapElements(at, Below(node->input_size()));
        return;
      case 1:
        node->mutable_input()->DeleteSubrange(at, 1);
        return;
      case 2:
        node->add_input(ValueName());
        return;
      case 3:
        if (node->output_size() > 0) node->set_input(at, node->output(0));
        return;
      default:
        node->set_input(at, ValueName());
    }
  }

  void NodeOutput() {
    NodeProto* node = Node();
    if (!node) return;
    if (node->output_size() == 0 || Chance(4)) {
      node->add_output(ValueName());
    } else if (Chance(4)) {
      node->mutable_output()->DeleteSubrange(0, 1);
    } else {
      node->set_output(Below(node->output_size()), ValueName());
    }
  }

  void ChangeTensor(TensorProto& tensor) {
    switch (random_() % 3) {
      case 0:
        ChangeList(tensor.mutable_dims(), [&] { return Odd(); });
        return;
      case 1:
        ChangeData(tensor);
        return;
      default:
        ChangeNumber(tensor);
    }
  }

  void TensorShape() {
    TensorProto* tensor = Initializer();
    if (!tensor) return;
    if (Chance(3)) return tensor->set_data_type(Below(28));
    ChangeList(tensor->mutable_dims(), [&] { return Odd(); });
  }

  void TensorData() {
    if (TensorProto* tensor = Initializer()) ChangeData(*tensor);
  }

  void ChangeData(TensorProto& tensor) {
    if (Chance(3)) {
      tensor.add_int32_data(static_cast<int32_t>(Odd()));
    } else if (tensor.has_raw_data()) {
      std::string bytes = tensor.raw_data();
      bytes.resize(Chance(2) ? bytes.size() / 2 : bytes.size() + random_() % 9);
      tensor.set_raw_data(bytes);
    } else {
      tensor.add_float_data(1);
      tensor.clear_int64_data();
    }
  }

  /// One element: shapes, axes, pads and counts are tensors too.
  void TensorValue() {
    std::vector<TensorProto*> integers;
    for (TensorProto& tensor : *graph_->mutable_initializer()) {
      if (tensor.data_type() == TensorProto::INT64) integers.push_back(&tensor);
    }
    for (NodeProto& node : *graph_->mutable_node()) {
      for (AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_t() && attribute.t().data_type() == TensorProto::INT64) integers.push_back(attribute.mutable_t());
      }
    }
    if (!integers.empty()) ChangeNumber(*integers[random_() % integers.size()]);
  }

  void ChangeNumber(TensorProto& tensor) {
    const int64_t value = Odd();
    if (tensor.int64_data_size() > 0) tensor.set_int64_data(Below(tensor.int64_data_size()), value);
    if (tensor.int32_data_size() > 0) tensor.set_int32_data(Below(tensor.int32_data_size()), static_cast<int32_t>(value));
    if (tensor.float_data_size() > 0) tensor.set_float_data(Below(tensor.float_data_size()), static_cast<float>(value));
    std::string bytes = tensor.raw_data();
    if (bytes.size() < sizeof(value)) return;
    std::memcpy(bytes.data() + random_() % (bytes.size() / sizeof(value)) * sizeof(value), &value, sizeof(value));
    tensor.set_raw_data(bytes);
  }

  void Operator() {
    NodeProto* node = Node();
    if (!node) return;
    constexpr const char* kOperators[] = {"Add",
                                          "Reshape",
                                          "Concat",
                                          "Gather",
                                          "Conv",
                                          "MatMul",
                                          "Slice",
                                          "Expand",
                                          "Softmax",
                                          "If",
                                          "Loop",
                                          "Scan",
                                          "LSTM",
                                          "Resize",
                                          "QuantizeLinear",
                                          "TopK",
                                          "Einsum",
                                          "Nothing",
                                          "Tile",
                                          "Pad",
                                          "Range",
                                          "ConstantOfShape",
                                          "DequantizeLinear",
                                          "OneHot",
                                          "Split",
                                          "Where"};
    if (Chance(6)) {
      node->set_domain(Chance(2) ? "com.microsoft" : "nowhere");
    } else {
      node->set_op_type(kOperators[random_() % std::size(kOperators)]);
    }
  }

  void Opset() {
    if (model_.opset_import_size() == 0 || Chance(5)) {
      model_.add_opset_import()->set_version(Odd());
    } else {
      model_.mutable_opset_import(0)->set_version(Chance(2) ? static_cast<int64_t>(6 + random_() % 24) : Odd());
    }
  }

  void Order() {
    NodeProto* node = Node();
    if (!node) return;
    const int other = Below(graph_->node_size());
    switch (random_() % 3) {
      case 0:
        graph_->mutable_node()->SwapElements(Below(graph_->node_size()), other);
        return;
      case 1:
        graph_->mutable_node()->DeleteSubrange(other, 1);
        return;
      default:
        *graph_->add_node() = NodeProto(*node);
    }
  }

  void Ends() {
    ValueInfoProto* end = End();
    if (!end) return;
    switch (random_() % 4) {
      case 0:
        end->set_name(ValueName());
        return;
      case 1:
        *graph_->add_output() = ValueInfoProto(*end);
        return;
      case 2:
        *graph_->add_input() = ValueInfoProto(*end);
        return;
      default:
        if (graph_->output_size() > 0) graph_->mutable_output()->DeleteSubrange(0, 1);
    }
  }

  ModelProto& model_;
  std::mt19937_64& random_;
  GraphProto* graph_ = nullptr;
};

}  // namespace

std::string MutatedModel(const std::string& model, std::mt19937_64& random) {
  ModelProto message;
  if (!message.ParseFromString(model)) return model;
  for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) Mutator(message, random).Mutate();
  return message.SerializeAsString();
}

}  // namespace collage
