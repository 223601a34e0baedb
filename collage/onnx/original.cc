#include "collage/onnx/original.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "collage/ir/original_model.h"
#include "collage/ir/visit.h"
#include "collage/onnx/graph.h"
#include "collage/onnx/model_bytes.h"
#include "collage/onnx/node_order.h"
#include "collage/onnx/tensor_message.h"
#include "collage/onnx/writer.h"
#include "collage/support/base64.h"
#include "collage/tensor/narrow.h"
#include "onnx_message.pb.h"

namespace collage {
namespace {

using onnx_io::NamedTensor;
using onnx_message::GraphProto;
using onnx_message::ModelProto;
using onnx_message::NodeProto;

// Before this version of the format, initializers had to be inputs as well.
constexpr int64_t kInitializersAlone = 4;

Result<ModelProto> Parse(std::string_view message) {
  ModelProto model;
  if (!model.ParseFromArray(message.data(), static_cast<int>(message.size())) || !model.has_graph())
    return Fail("what a function carries is no ONNX model");
  return model;
}

void PutInOrder(GraphProto& graph) {
  const std::vector<int> order = onnx_io::NodeOrder(graph);
  auto nodes = std::move(*graph.mutable_node());
  graph.clear_node();
  for (const int number : order) graph.add_node()->Swap(&nodes[number]);
}

/// Some exporters write every weight as a node.
void TakeConstants(GraphProto& graph, std::vector<NamedTensor>& weights) {
  constexpr size_t kLeastBytes = 512;  // shapes and axes stay where the reader of a model looks for them
  onnx_io::ExternalFiles no_files{{}, {}};
  auto nodes = std::move(*graph.mutable_node());
  graph.clear_node();
  for (NodeProto& node : nodes) {
    const bool may_be_weight = node.op_type() == "Constant" && node.output_size() == 1 && node.attribute_size() == 1 &&
                               node.attribute(0).name() == "value" && node.attribute(0).ByteSizeLong() >= kLeastBytes;
    Result<Tensor> value = may_be_weight ? ReadTensorMessage(node.attribute(0).t(), no_files) : Fail("no weight");
    if (value) {
      weights.emplace_back(node.output(0), std::move(*value));
    } else {
      graph.add_node()->Swap(&node);
    }
  }
}

void DropRemarks(ModelProto& model) {
  GraphProto& graph = *model.mutable_graph();
  model.clear_doc_string();
  model.clear_metadata_props();
  model.clear_training_info();
  graph.clear_doc_string();
  // They follow from the inputs, whose shapes may be given by the user.
  graph.clear_value_info();
  for (NodeProto& node : *graph.mutable_node()) {
    node.clear_doc_string();
    node.clear_metadata_props();
  }
}

/// Of the tensors of a function's parameters or results.
std::vector<TensorType> TypesOf(const std::vector<Expr>& exprs) {
  std::vector<TensorType> types;
  for (const Expr& expr : exprs) {
    for (TensorType& type : FlattenTensors(expr->type())) types.push_back(std::move(type));
  }
  return types;
}

/// The constants of an expression by where their elements lie: equal ones are to be the same expression, which is sent and saved once.
std::unordered_map<const std::byte*, Expr> ConstantsOf(const Expr& expr) {
  std::unordered_map<const std::byte*, Expr> constants;
  PostOrder(expr, [&](const Expr& inner) {
    if (const Constant* constant = inner->As<Constant>()) constants.emplace(constant->value.Bytes(), inner);
  });
  return constants;
}

}  // namespace

Result<OriginalModel> TakeApart(std::string_view bytes, const onnx_io::OnnxGraph& graph) {
  const std::optional<onnx_io::SplitModel> split = onnx_io::SplitRawData(bytes);
  if (!split) return Fail("its message is of an unusual form");
  ModelProto model = COLLAGE_TRY(Parse(split->message));
  GraphProto& message = *model.mutable_graph();
  message.clear_initializer();
  message.clear_sparse_initializer();
  DropRemarks(model);
  if (model.ir_version() < kInitializersAlone) model.set_ir_version(kInitializersAlone);
  std::vector<NamedTensor> weights = graph.initializers;
  PutInOrder(message);
  TakeConstants(message, weights);

  OriginalModel original;
  std::unordered_set<std::string> is_weight;
  for (const auto& [name, value] : weights) {
    is_weight.insert(name);
    if (IsNarrow(value.dtype()) && !IsSixteenBitFloat(value.dtype()))
      return Fail("its weight '" + name + "' is " + std::string(Name(value.dtype())) + ", which is packed");
  }
  auto inputs = std::move(*message.mutable_input());
  message.clear_input();
  for (auto& input : inputs) {
    if (is_weight.contains(input.name())) continue;
    original.input_names.push_back(input.name());
    message.add_input()->Swap(&input);
  }
  for (auto& [name, value] : weights) {
    message.add_input()->set_name(name);
    original.weights.push_back(std::move(value));
  }
  constexpr size_t kMostBytes = size_t{64} << 20;  // of nodes; it is copied wherever the function goes
  if (model.ByteSizeLong() > kMostBytes) return Fail("its nodes take " + std::to_string(model.ByteSizeLong() >> 20) + " MiB");
  original.message = model.SerializeAsString();
  return original;
}

Result<OriginalModel> HeadOf(const OriginalModel& original, const std::vector<std::string>& outputs) {
  ModelProto model = COLLAGE_TRY(Parse(original.message));
  GraphProto& graph = *model.mutable_graph();
  std::unordered_set<std::string> needed(outputs.begin(), outputs.end());
  auto nodes = std::move(*graph.mutable_node());
  std::vector<bool> is_kept(static_cast<size_t>(nodes.size()), false);
  std::unordered_set<std::string> given;
  for (int i = nodes.size(); i-- > 0;) {
    const auto& names = nodes[i].output();
    if (std::none_of(names.begin(), names.end(), [&](const std::string& name) { return needed.contains(name); })) continue;
    is_kept[static_cast<size_t>(i)] = true;
    given.insert(names.begin(), names.end());
    onnx_io::AddNamesRead(nodes[i], needed);
  }
  graph.clear_node();
  for (int i = 0; i < nodes.size(); ++i) {
    if (is_kept[static_cast<size_t>(i)]) graph.add_node()->Swap(&nodes[i]);
  }
  graph.clear_output();
  for (const std::string& output : outputs) {
    if (!given.contains(output)) return Fail("no node of the model gives '" + output + "'");
    graph.add_output()->set_name(output);
  }
  OriginalModel head{{}, original.input_names, {}};
  auto inputs = std::move(*graph.mutable_input());
  graph.clear_input();
  const auto own = static_cast<int>(original.input_names.size());
  for (int i = 0; i < inputs.size(); ++i) {
    if (i >= own && !needed.contains(inputs[i].name())) continue;
    if (i >= own) head.weights.push_back(original.weights[static_cast<size_t>(i - own)]);
    graph.add_input()->Swap(&inputs[i]);
  }
  head.message = model.SerializeAsString();
  return head;
}

Result<Expr> CarryOriginal(const OnnxModel& model, const std::vector<size_t>& inputs, const std::vector<size_t>& outputs,
                           const Attributes& attributes) {
  const OriginalModel& original = *model.original;
  const Function& main = model.module.Main();
  if (model.module.functions().size() > 1) return Fail("the model has functions of its own");
  if (model.input_names != original.input_names) return Fail("the model's inputs are not those of its function");

  ModelProto message = COLLAGE_TRY(Parse(original.message));
  GraphProto& graph = *message.mutable_graph();
  const auto all_outputs = std::move(*graph.mutable_output());
  graph.clear_output();
  const Tuple* tuple = main.body->As<Tuple>();
  std::vector<Expr> results;
  for (const size_t output : outputs) {
    *graph.add_output() = all_outputs[static_cast<int>(output)];
    results.push_back(all_outputs.size() == 1 ? main.body : tuple ? tuple->fields[output] : nullptr);
    if (!results.back()) return Fail("the model's function gives no tuple of its outputs");
  }

  std::vector<Expr> parameters = main.parameters;
  std::vector<Expr> arguments(parameters.size());
  std::vector<Expr> own;
  for (const size_t input : inputs) {
    own.push_back(MakeVar("p" + std::to_string(own.size()), parameters[input]->type()));
    arguments[input] = own.back();
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i]) arguments[i] = MakeConstant(Tensor(*parameters[i]->type().AsTensor()));
  }
  const auto constants = ConstantsOf(main.body);
  for (const Tensor& weight : original.weights) {
    parameters.push_back(MakeVar("w" + std::to_string(parameters.size()), weight.type()));
    const auto known = constants.find(weight.Bytes());
    const bool is_equal = known != constants.end() && known->second->type() == parameters.back()->type();
    arguments.push_back(is_equal ? known->second : MakeConstant(weight));
  }
  const Expr body = results.size() == 1 ? results[0] : MakeTuple(std::move(results));
  Attributes carried;
  carried.Set(std::string(kOnnxModelAttribute), ToBase64(message.SerializeAsString()));
  const Expr literal = COLLAGE_TRY(MakeFunction(std::move(parameters), body, std::move(carried)));
  return MakeFunction(std::move(own), COLLAGE_TRY(MakeCall(literal, std::move(arguments))), attributes);
}

Result<OnnxForm> RewrittenForm(const Function& function, LargeWeightsAs large) {
  onnx_io::WeightsBeside beside{large, {}};
  WriteOptions options;
  if (large != LargeWeightsAs::kBytes) options.beside = &beside;
  std::string bytes = COLLAGE_TRY(WriteOnnx(function, options));
  OnnxForm form{std::move(bytes), {}, {}, TypesOf(function.parameters), FlattenTensors(function.result_type), std::move(beside.weights)};
  for (size_t i = 0; i < form.inputs.size(); ++i) form.input_names.push_back("p" + std::to_string(i));
  for (size_t i = 0; i < form.outputs.size(); ++i) form.output_names.push_back("r" + std::to_string(i));
  return form;
}

Result<OnnxForm> OriginalForm(const Function& function, LargeWeightsAs large) {
  const Call* call = CallOfOriginal(function);
  if (!call) return Fail("the function carries no ONNX model");
  const std::string text = COLLAGE_TRY(call->callee->As<Function>()->attributes.String(kOnnxModelAttribute, ""));
  const std::string message = COLLAGE_TRY(FromBase64(text));
  ModelProto model = COLLAGE_TRY(Parse(message));
  GraphProto graph;
  graph.Swap(model.mutable_graph());
  model.clear_graph();
  OnnxForm form{{}, {}, {}, TypesOf(function.parameters), FlattenTensors(function.result_type), {}};
  if (static_cast<size_t>(graph.input_size()) != call->args.size() || static_cast<size_t>(graph.output_size()) != form.outputs.size())
    return Fail("the ONNX model that the function carries has other inputs or outputs than the function");

  auto inputs = std::move(*graph.mutable_input());
  graph.clear_input();
  std::unordered_map<const ExprNode*, std::string> names;
  std::vector<NamedTensor> weights;
  for (size_t i = 0; i < call->args.size(); ++i) {
    const std::string& name = inputs[static_cast<int>(i)].name();
    if (const Constant* constant = call->args[i]->As<Constant>()) {
      weights.emplace_back(name, constant->value);
    } else {
      names[call->args[i].get()] = name;
    }
  }
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    const auto name = names.find(function.parameters[i].get());
    if (name == names.end()) return Fail("the ONNX model that the function carries does not take its parameter " + std::to_string(i));
    form.input_names.push_back(name->second);
    onnx_message::ValueInfoProto& input = *graph.add_input();
    input.set_name(name->second);
    onnx_io::SetType(form.inputs[i], input);
  }
  for (size_t i = 0; i < form.outputs.size(); ++i) {
    onnx_message::ValueInfoProto& output = *graph.mutable_output(static_cast<int>(i));
    form.output_names.push_back(output.name());
    onnx_io::SetType(form.outputs[i], output);
  }
  onnx_io::WeightsBeside beside{large, {}};
  form.bytes = COLLAGE_TRY(onnx_io::ModelBytes(model, graph, weights, large == LargeWeightsAs::kBytes ? nullptr : &beside));
  form.weights = std::move(beside.weights);
  return form;
}

}  // namespace collage
