#include "collage/onnx/reader.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "collage/ir/visit.h"
#include "collage/onnx/graph.h"
#include "collage/onnx/node_reader.h"
#include "collage/onnx/rows.h"
#include "collage/support/file.h"

namespace collage {
namespace {

using onnx_io::ConstantFolder;
using onnx_io::NodeReader;
using onnx_io::OnnxDimension;
using onnx_io::OnnxGraph;
using onnx_io::OnnxInput;
using onnx_io::OnnxNode;
using onnx_io::ReadRow;

/// "1x3x224x224" with the symbols, or "?", of unknown extents.
std::string FlagFor(const OnnxInput& input) {
  std::string extents;
  for (const OnnxDimension& dimension : *input.shape) {
    if (!extents.empty()) extents += "x";
    extents += dimension.extent ? std::to_string(*dimension.extent) : dimension.symbol.empty() ? "?" : dimension.symbol;
  }
  return "--shape " + input.name + "=" + extents;
}

/// The shape of an input: what the model says, with what it leaves open filled in from the options.
Result<Shape> ResolveInputShape(const OnnxInput& input, const Shape* given) {
  if (!input.shape) {
    if (given != nullptr) return *given;
    return Fail("has no known rank: give its shape, for example --shape " + input.name + "=1x3x224x224");
  }
  if (given != nullptr && given->size() != input.shape->size()) {
    return Fail("is given " + std::to_string(given->size()) + " extents where " + std::to_string(input.shape->size()) +
                " are right: " + FlagFor(input));
  }
  Shape shape;
  for (size_t i = 0; i < input.shape->size(); ++i) {
    const std::optional<int64_t>& extent = (*input.shape)[i].extent;
    if (given == nullptr && !extent) return Fail("has symbolic extents: give numbers for them with " + FlagFor(input));
    if (given != nullptr && extent && (*given)[i] != *extent) {
      return Fail("is given the extent " + std::to_string((*given)[i]) + " for dimension " + std::to_string(i) +
                  ", which the model fixes at " + std::to_string(*extent) + ": " + FlagFor(input));
    }
    shape.push_back(extent ? *extent : (*given)[i]);
  }
  return shape;
}

/// Turns the nodes of a graph into expressions, in their order, which ONNX demands to be topological.
class GraphReader {
 public:
  /// `fixed`: inputs whose given value is taken for a constant.
  GraphReader(OnnxGraph graph, const ReadOptions& options, const std::set<std::string>& fixed)
      : graph_(std::move(graph)), options_(options), fixed_(fixed) {}

  /// After an error: the inputs whose values had to be known.
  [[nodiscard]] std::set<std::string> RequiredInputs() const {
    std::set<std::string> names;
    if (folder_.required() == nullptr) return names;
    PostOrder(folder_.required(), [&](const Expr& expr) {
      if (const Var* variable = expr->As<Var>()) names.insert(variable->name);
    });
    return names;
  }

  Result<OnnxModel> Read() {
    COLLAGE_TRY_STATUS(DefineInitializers());
    COLLAGE_TRY_STATUS(DefineInputs());
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (Status status = ReadNode(i); !status) return Fail(status.error().At(PlaceOf(i)));
    }
    const Expr body = COLLAGE_TRY(Body());
    OnnxModel model;
    model.module = IRModule::FromMain(COLLAGE_TRY(MakeFunction(parameters_, body)));
    for (const Expr& parameter : parameters_) model.input_names.push_back(parameter->As<Var>()->name);
    model.output_names = graph_.outputs;
    model.fixed_inputs.assign(fixed_.begin(), fixed_.end());
    model.opset = graph_.opset;
    return model;
  }

 private:
  Status Define(const std::string& name, Expr value) {
    if (!values_.emplace(name, std::move(value)).second) return Fail("the name '" + name + "' is defined twice");
    return {};
  }

  Status DefineInitializers() {
    for (auto& [name, tensor] : graph_.initializers) {
      folder_.Allow(static_cast<double>(tensor.ByteCount()));
      COLLAGE_TRY_STATUS(Define(name, MakeConstant(std::move(tensor))));
    }
    graph_.initializers.clear();
    return {};
  }

  Status DefineInputs() {
    for (const OnnxInput& input : graph_.inputs) {
      const bool is_initializer = values_.contains(input.name) && !IsParameter(input.name);
      if (is_initializer) continue;
      Result<TensorType> type = InputType(input, GivenShape(input.name));
      if (!type) return Fail("input '" + input.name + "' " + type.error().message);
      if (fixed_.contains(input.name)) {
        COLLAGE_TRY_STATUS(DefineFixed(input.name, *type));
        continue;
      }
      parameters_.push_back(MakeVar(input.name, std::move(*type)));
      COLLAGE_TRY_STATUS(Define(input.name, parameters_.back()));
    }
    for (const auto& [name, shape] : options_.input_shapes) {
      if (!IsParameter(name)) return Fail("a shape is given for '" + name + "', which is no input: the inputs are " + InputList());
    }
    return {};
  }

  [[nodiscard]] const Shape* GivenShape(const std::string& input) const {
    const auto shape = options_.input_shapes.find(input);
    if (shape != options_.input_shapes.end()) return &shape->second;
    const auto value = options_.input_values.find(input);
    return value == options_.input_values.end() ? nullptr : &value->second.shape();
  }

  Status DefineFixed(const std::string& name, const TensorType& type) {
    const Tensor& value = options_.input_values.at(name);
    if (value.type() == type) return Define(name, MakeConstant(value));
    return Fail("input '" + name + "' is given a value of type " + ToString(value.type()) + " where " + ToString(type) + " is right");
  }

  static Result<TensorType> InputType(const OnnxInput& input, const Shape* given) {
    if (!input.dtype) return Fail("is no dense tensor of a supported element type");
    TensorType type{COLLAGE_TRY(ResolveInputShape(input, given)), *input.dtype};
    COLLAGE_TRY_STATUS(onnx_io::CheckExtents(type.shape));
    return type;
  }

  [[nodiscard]] bool IsParameter(const std::string& name) const {
    const auto found = values_.find(name);
    return found != values_.end() && found->second != nullptr && found->second->As<Var>() != nullptr;
  }

  [[nodiscard]] std::string InputList() const {
    std::string list;
    for (const Expr& parameter : parameters_) list += (list.empty() ? "" : ", ") + parameter->As<Var>()->name;
    return list.empty() ? "none" : list;
  }

  /// "node 'conv1' (Conv, opset 9)"; nodes without a name go by their place and first output.
  [[nodiscard]] std::string PlaceOf(size_t index) const {
    const OnnxNode& node = graph_.nodes[index];
    std::string place = "node '" + node.name + "'";
    if (node.name.empty()) {
      place = "node " + std::to_string(index);
      if (!node.outputs.empty()) place += " giving '" + node.outputs[0] + "'";
    }
    return place + " (" + node.op_type + ", opset " + std::to_string(node.opset) + ")";
  }

  Result<Expr> Lookup(const std::string& name) const {
    if (name.empty()) return Expr();
    const auto found = values_.find(name);
    if (found == values_.end()) return Fail("reads '" + name + "', which no input, initializer or earlier node gives");
    if (found->second == nullptr) return Fail("reads '" + name + "', " + AbsentOutput(name));
    return found->second;
  }

  /// What an optional output that no row of the table makes is called in errors.
  [[nodiscard]] std::string AbsentOutput(const std::string& name) const {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const std::vector<std::string>& outputs = graph_.nodes[i].outputs;
      if (std::find(outputs.begin(), outputs.end(), name) != outputs.end())
        return "an optional output of " + PlaceOf(i) + " that is not supported";
    }
    return "an optional output that is not supported";
  }

  Status ReadNode(size_t index) {
    OnnxNode& node = graph_.nodes[index];
    const ReadRow* row = onnx_io::FindReadRow(node.domain.empty() ? node.op_type : node.domain + "." + node.op_type);
    if (row == nullptr) {
      return Fail("this operator" + (node.domain.empty() ? "" : " of the domain '" + node.domain + "'") + " is not supported");
    }
    std::vector<Expr> inputs;
    for (const std::string& name : node.inputs) inputs.push_back(COLLAGE_TRY(Lookup(name)));
    if (node.outputs.empty()) return Fail("has no output");
    const Origin origin({OriginPart::Kind::kOnnxNode, NameOf(node), node.place});
    NodeReader reader(node.op_type, node.opset, inputs, std::move(node.attributes), node.outputs.size(), &folder_, origin);
    const std::vector<Expr> outputs = COLLAGE_TRY(row->read(reader));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      COLLAGE_TRY_STATUS(Define(node.outputs[i], i < outputs.size() ? WithNode(outputs[i], inputs, origin) : nullptr));
    }
    return {};
  }

  /// A constant that a node holds or knows (Constant, Shape) comes from it, one that it passes on does not.
  static Expr WithNode(const Expr& output, const std::vector<Expr>& inputs, const Origin& origin) {
    if (output == nullptr) return output;  // an output that is not supported
    const bool made_here =
        output->As<Constant>() && output->origin().Empty() && std::find(inputs.begin(), inputs.end(), output) == inputs.end();
    return made_here ? WithOrigin(output, origin) : output;
  }

  /// As Netron shows it; a node without a name goes by its operator and first output: "Conv:12".
  static std::string NameOf(const OnnxNode& node) { return node.name.empty() ? node.op_type + ":" + node.outputs[0] : node.name; }

  Result<Expr> Body() {
    if (graph_.outputs.empty()) return Fail("the model has no outputs");
    std::vector<Expr> outputs;
    for (const std::string& name : graph_.outputs) {
      const auto found = values_.find(name);
      if (found == values_.end()) return Fail("output '" + name + "' is given by no node, input or initializer");
      if (found->second == nullptr) return Fail("output '" + name + "' is " + AbsentOutput(name));
      outputs.push_back(found->second);
    }
    return outputs.size() == 1 ? outputs[0] : MakeTuple(std::move(outputs));
  }

  OnnxGraph graph_;
  const ReadOptions& options_;
  const std::set<std::string>& fixed_;
  ConstantFolder folder_;
  std::unordered_map<std::string, Expr> values_;  // null: an output that is not supported
  std::vector<Expr> parameters_;
};

}  // namespace

namespace {

/// Reads the graph; where a value had to be known that depends on inputs whose values are given, again with these fixed.
Result<OnnxModel> ReadWithFixedInputs(OnnxGraph graph, const ReadOptions& options) {
  std::set<std::string> fixed;
  while (true) {
    const bool may_fix_more = fixed.size() < options.input_values.size();
    GraphReader reader(may_fix_more ? graph : std::move(graph), options, fixed);
    Result<OnnxModel> model = reader.Read();
    if (model || !may_fix_more) return model;
    const size_t before = fixed.size();
    for (const std::string& name : reader.RequiredInputs()) {
      if (options.input_values.contains(name)) fixed.insert(name);
    }
    if (fixed.size() == before) return model;
  }
}

}  // namespace

Result<OnnxModel> ReadOnnx(std::string_view bytes, const ReadOptions& options) {
  try {
    return ReadWithFixedInputs(COLLAGE_TRY(onnx_io::ParseOnnxGraph(bytes, options.external_data_directory)), options);
  } catch (const std::bad_alloc&) {
    return Fail("the model needs more memory than there is");
  }
}

Result<OnnxModel> ReadOnnxFile(const std::filesystem::path& path, ReadOptions options) {
  const std::string bytes = COLLAGE_TRY(ReadFile(path));
  if (options.external_data_directory.empty()) {
    options.external_data_directory = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  }
  Result<OnnxModel> model = ReadOnnx(bytes, options);
  if (!model) return Fail(model.error().At(path.string()));
  return model;
}

}  // namespace collage
