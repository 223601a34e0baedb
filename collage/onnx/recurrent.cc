#include <algorithm>

#include "collage/onnx/data_type.h"
#include "collage/onnx/formula.h"
#include "collage/onnx/node_writer.h"
#include "collage/onnx/rows.h"

namespace collage::onnx_io {
namespace {

std::string LowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

AttributeValue::List Numbers(const std::vector<float>& values) {
  AttributeValue::List list;
  for (float value : values) list.emplace_back(static_cast<double>(value));
  return list;
}

/// direction, activations and clip are called alike.
Result<Attributes> CommonAttributes(const NodeReader& node) {
  Attributes attributes{{"direction", COLLAGE_TRY(node.String("direction", "forward"))}};
  if (node.HasAttribute("activations")) {
    AttributeValue::List names;
    for (const std::string& name : COLLAGE_TRY(node.Strings("activations", {}))) names.emplace_back(LowerCase(name));
    attributes.Set("activations", names);
  }
  for (const char* name : {"activation_alpha", "activation_beta"}) {
    if (node.HasAttribute(name)) attributes.Set(name, Numbers(COLLAGE_TRY(node.Floats(name, {}))));
  }
  if (node.HasAttribute("clip")) attributes.Set("clip", static_cast<double>(COLLAGE_TRY(node.Float("clip", 0))));
  return attributes;
}

/// Optional inputs of a recurrent layer as constants: zeros, and the full length for each element of the batch.
class LayerInputs {
 public:
  /// `columns_are_gates`: weights are [directions, inputs, gates * hidden] and not transposed.
  LayerInputs(NodeReader& node, Formula& formula, bool columns_are_gates = false)
      : node_(node), formula_(formula), columns_are_gates_(columns_are_gates) {}

  /// layout 1 (opset 14) has the batch before the steps, and before the directions of a state.
  Result<std::vector<Expr>> Make(int64_t gates, bool has_cell) {
    const bool batch_first = COLLAGE_TRY(node_.Int("layout", 0)) != 0;
    Expr data = COLLAGE_TRY(node_.Input(0));
    if (COLLAGE_TRY(TensorTypeOf(data)).shape.size() != 3) return Fail("input 0 (X) must have 3 dimensions");
    if (batch_first) data = formula_.Transpose(data, {1, 0, 2});
    const Expr weight = COLLAGE_TRY(node_.Input(1));
    const Expr recurrent = COLLAGE_TRY(node_.Input(2));
    Shape shape = COLLAGE_TRY(TensorTypeOf(recurrent)).shape;
    if (shape.size() != 3) return Fail("input 2 (R) must have 3 dimensions");
    if (columns_are_gates_) std::swap(shape[1], shape[2]);
    const int64_t hidden = COLLAGE_TRY(node_.Int("hidden_size", shape[2]));
    if (hidden != shape[2])
      return Fail("attribute 'hidden_size' is " + std::to_string(hidden) + "; " + std::to_string(shape[2]) + " is right");
    COLLAGE_TRY(formula_.Done(data));
    const Shape whole = Formula::ShapeOf(data);
    const Shape state{shape[0], whole[1], shape[2]};
    std::vector<Expr> inputs{data, weight, recurrent, COLLAGE_TRY(Or(3, {shape[0], 2 * gates * shape[2]}))};
    inputs.push_back(COLLAGE_TRY(Lengths(whole)));
    inputs.push_back(COLLAGE_TRY(State(5, state, batch_first)));
    if (!has_cell) return inputs;
    inputs.push_back(COLLAGE_TRY(State(6, state, batch_first)));
    inputs.push_back(COLLAGE_TRY(Or(7, {shape[0], 3 * shape[2]})));
    return inputs;
  }

 private:
  Result<Expr> Or(size_t input, const Shape& zeros) {
    if (node_.HasInput(input)) return node_.Input(input);
    return formula_.Zeros(zeros, formula_.dtype());
  }

  Result<Expr> State(size_t input, const Shape& shape, bool batch_first) {
    const Expr state = COLLAGE_TRY(Or(input, shape));
    return batch_first && node_.HasInput(input) ? formula_.Transpose(state, {1, 0, 2}) : state;
  }

  Result<Expr> Lengths(const Shape& data) {
    if (node_.HasInput(4)) return node_.Input(4);
    COLLAGE_TRY_STATUS(node_.folder().Reserve(8.0 * static_cast<double>(data[1])));
    const std::vector<int32_t> lengths(static_cast<size_t>(data[1]), static_cast<int32_t>(data[0]));
    return MakeConstant(Tensor::FromVector(TensorType{{data[1]}, DType::kInt32}, lengths));
  }

  NodeReader& node_;
  Formula& formula_;
  bool columns_are_gates_;
};

Result<std::vector<Expr>> ReadLayer(NodeReader& node, const std::string& op, int64_t gates, bool has_cell, Attributes attributes) {
  Formula formula(node, COLLAGE_TRY(node.InputType(0)).dtype);
  const std::vector<Expr> inputs = COLLAGE_TRY(LayerInputs(node, formula).Make(gates, has_cell));
  const Expr result = formula.Apply(op, inputs, attributes);
  std::vector<Expr> outputs;
  for (size_t i = 0; i < (has_cell ? 3U : 2U); ++i) outputs.push_back(formula.Project(result, i));
  if (COLLAGE_TRY(node.Int("layout", 0)) != 0) {
    outputs[0] = formula.Transpose(outputs[0], {2, 0, 1, 3});
    for (size_t i = 1; i < outputs.size(); ++i) outputs[i] = formula.Transpose(outputs[i], {1, 0, 2});
  }
  return formula.DoneAll(outputs);
}

Result<std::vector<Expr>> ReadRnn(NodeReader& node) { return ReadLayer(node, "nn.rnn", 1, false, COLLAGE_TRY(CommonAttributes(node))); }

Result<std::vector<Expr>> ReadGru(NodeReader& node) {
  Attributes attributes = COLLAGE_TRY(CommonAttributes(node));
  attributes.Set("linear_before_reset", COLLAGE_TRY(node.Int("linear_before_reset", 0)) != 0);
  return ReadLayer(node, "nn.gru", 3, false, attributes);
}

Result<std::vector<Expr>> ReadLstm(NodeReader& node) {
  Attributes attributes = COLLAGE_TRY(CommonAttributes(node));
  attributes.Set("input_forget", COLLAGE_TRY(node.Int("input_forget", 0)) != 0);
  return ReadLayer(node, "nn.lstm", 4, true, attributes);
}

std::vector<float> WrittenNumbers(const AttributeValue& list) {
  std::vector<float> numbers;
  for (const AttributeValue& item : *list.AsList()) {
    numbers.push_back(item.AsDouble() != nullptr ? static_cast<float>(*item.AsDouble()) : static_cast<float>(*item.AsInt()));
  }
  return numbers;
}

/// Names of functions are capitalised as ONNX writes them.
std::vector<std::string> WrittenNames(const AttributeValue& list) {
  std::vector<std::string> names;
  for (const AttributeValue& item : *list.AsList()) {
    for (const char* name : {"Sigmoid", "Tanh", "Relu", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu",
                             "Softsign", "Softplus"}) {
      if (LowerCase(name) == *item.AsString()) names.emplace_back(name);
    }
  }
  return names;
}

Result<OnnxAttributes> WrittenAttributes(const NodeWriter& writer) {
  const Attributes& attributes = writer.attributes();
  OnnxAttributes result{{"hidden_size", writer.InputType(2).shape[2]},
                        {"direction", COLLAGE_TRY(attributes.String("direction", "forward"))}};
  if (const AttributeValue* names = attributes.Find("activations"); names != nullptr && !names->IsNone()) {
    result.emplace_back("activations", WrittenNames(*names));
  }
  for (const char* name : {"activation_alpha", "activation_beta"}) {
    const AttributeValue* list = attributes.Find(name);
    if (list != nullptr && !list->IsNone()) result.emplace_back(name, WrittenNumbers(*list));
  }
  if (attributes.Has("clip")) result.emplace_back("clip", static_cast<float>(COLLAGE_TRY(attributes.Double("clip", 0))));
  return result;
}

template <int kind>  // 0: RNN, 1: GRU, 2: LSTM
Status WriteLayer(NodeWriter& writer) {
  OnnxAttributes attributes = COLLAGE_TRY(WrittenAttributes(writer));
  std::vector<std::string> inputs = writer.Inputs();
  if (writer.InputType(4).dtype != DType::kInt32) {
    inputs[4] = writer.EmitIntermediate("Cast", {inputs[4]}, {{"to", OnnxDataType(DType::kInt32)}});
  }
  if (kind == 1) {
    attributes.emplace_back("linear_before_reset", int64_t{COLLAGE_TRY(writer.attributes().Bool("linear_before_reset", false))});
  } else if (kind == 2) {
    attributes.emplace_back("input_forget", int64_t{COLLAGE_TRY(writer.attributes().Bool("input_forget", false))});
  }
  writer.EmitAll(kind == 0 ? "RNN" : kind == 1 ? "GRU" : "LSTM", inputs, attributes);
  return {};
}

/// The numbers of quantised weights [directions, inputs, gates * hidden] as weights of a layer of float32. Scale and zero point are one for
/// each direction, or one for each column.
Result<Expr> DequantisedWeights(const NodeReader& node, Formula& formula, size_t input, size_t scale, size_t zero_point) {
  const TensorType type = COLLAGE_TRY(node.InputType(input));
  if (type.shape.size() != 3 || (type.dtype != DType::kInt8 && type.dtype != DType::kUInt8))
    return Fail("input " + std::to_string(input) + " is " + ToString(type) + ", expected int8 or uint8 in 3 dimensions");
  const auto along_columns = [&](size_t parameter) -> Result<Expr> {
    const Shape shape = COLLAGE_TRY(node.InputType(parameter)).shape;
    const bool is_of_column = shape == Shape{type.shape[0], type.shape[2]};
    if (!is_of_column && shape != Shape{type.shape[0]}) {
      return Fail("input " + std::to_string(parameter) + " has shape " + ToString(shape) +
                  ", expected one number for each direction or each column of " + ToString(type.shape));
    }
    return formula.Reshape(formula.Cast(COLLAGE_TRY(node.Input(parameter)), DType::kFloat32), {shape[0], 1, is_of_column ? shape[1] : 1});
  };
  const Expr centred =
      formula.Call("subtract", formula.Cast(COLLAGE_TRY(node.Input(input)), DType::kFloat32), COLLAGE_TRY(along_columns(zero_point)));
  return formula.Transpose(formula.Call("multiply", centred, COLLAGE_TRY(along_columns(scale))), {0, 2, 1});
}

/// LSTM by integers: data and, at each step, states are quantised over their range; weights come quantised.
Result<std::vector<Expr>> ReadDynamicQuantizeLstm(NodeReader& node) {
  Attributes attributes = COLLAGE_TRY(CommonAttributes(node));
  attributes.Set("input_forget", COLLAGE_TRY(node.Int("input_forget", 0)) != 0);
  Formula formula(node, DType::kFloat32);
  std::vector<Expr> inputs = COLLAGE_TRY(LayerInputs(node, formula, /*columns_are_gates=*/true).Make(4, true));
  const std::vector<Expr> data = COLLAGE_TRY(node.ReadAs("DynamicQuantizeLinear", {inputs[0]}));
  inputs[0] = formula.Apply("qnn.dequantize", data);
  inputs[1] = COLLAGE_TRY(DequantisedWeights(node, formula, 1, 8, 9));
  inputs[2] = COLLAGE_TRY(DequantisedWeights(node, formula, 2, 10, 11));
  const Expr result = formula.Apply("qnn.lstm", inputs, attributes);
  return formula.DoneAll({formula.Project(result, 0), formula.Project(result, 1), formula.Project(result, 2)});
}

}  // namespace

OperatorFamily RecurrentFamily() {
  static constexpr ReadRow kRead[] = {
      {"RNN", ReadRnn}, {"GRU", ReadGru}, {"LSTM", ReadLstm}, {"com.microsoft.DynamicQuantizeLSTM", ReadDynamicQuantizeLstm}};
  static constexpr WriteRow kWrite[] = {{"nn.rnn", WriteLayer<0>}, {"nn.gru", WriteLayer<1>}, {"nn.lstm", WriteLayer<2>}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
