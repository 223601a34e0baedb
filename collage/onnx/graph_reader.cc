#include "collage/onnx/graph_reader.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "collage/onnx/node_reader.h"
#include "collage/onnx/rows.h"
#include "collage/onnx/sequence.h"
#include "collage/op/interpreter.h"
#include "collage/support/memory.h"

namespace collage::onnx_io {
namespace {

// Bodies are read again for each iteration that is unrolled, and bodies inside of bodies multiply.
constexpr size_t kMostBodyNodes = 1000000;

/// A constant that a node holds or knows (Constant, Shape) comes from it, one that it passes on does not.
Expr WithNode(const Expr& output, const std::vector<Expr>& inputs, const Origin& origin) {
  if (output == nullptr) return output;  // an output that is not supported
  const bool made_here =
      output->As<Constant>() && output->origin().Empty() && std::find(inputs.begin(), inputs.end(), output) == inputs.end();
  return made_here ? WithOrigin(output, origin) : output;
}

/// Of what ONNX gives strings to, those that move or compare elements; the others compute with numbers.
bool TakesStrings(std::string_view op) {
  static const std::unordered_set<std::string_view> ops = {"Cast",
                                                           "CastLike",
                                                           "Concat",
                                                           "ConcatFromSequence",
                                                           "DepthToSpace",
                                                           "Equal",
                                                           "Expand",
                                                           "Flatten",
                                                           "Gather",
                                                           "GatherElements",
                                                           "GatherND",
                                                           "Identity",
                                                           "Loop",
                                                           "Optional",
                                                           "OptionalGetElement",
                                                           "OptionalHasElement",
                                                           "RegexFullMatch",
                                                           "Reshape",
                                                           "ReverseSequence",
                                                           "Scan",
                                                           "SequenceConstruct",
                                                           "SequenceInsert",
                                                           "SequenceMap",
                                                           "Shape",
                                                           "Size",
                                                           "Slice",
                                                           "SpaceToDepth",
                                                           "Split",
                                                           "SplitToSequence",
                                                           "Squeeze",
                                                           "StringConcat",
                                                           "StringNormalizer",
                                                           "StringSplit",
                                                           "TfIdfVectorizer",
                                                           "Tile",
                                                           "Transpose",
                                                           "Unique",
                                                           "Unsqueeze",
                                                           "Where",
                                                           "ai.onnx.ml.ArrayFeatureExtractor",
                                                           "ai.onnx.ml.LabelEncoder",
                                                           "ai.onnx.ml.OneHotEncoder"};
  return ops.contains(op);
}

/// By which rows are found.
std::string TableName(const OnnxNode& node) { return node.domain.empty() ? node.op_type : node.domain + "." + node.op_type; }

Result<const ReadRow*> RowOf(const OnnxNode& node) {
  if (const ReadRow* row = FindReadRow(TableName(node))) return row;
  // Weights lie there in blocks as wide as the vectors of that CPU, and the file does not say how wide.
  if (node.domain == "com.microsoft.nchwc")
    return Fail(
        "this operator of the domain 'com.microsoft.nchwc' is for the CPU on which ONNX Runtime optimised the model; save the model "
        "as it was, or optimised at most to the level 'extended'");
  return Fail("this operator" + (node.domain.empty() ? "" : " of the domain '" + node.domain + "'") + " is not supported");
}

/// As Netron shows it; a node without a name goes by its operator and first output: "Conv:12".
std::string NameOf(const OnnxNode& node) { return node.name.empty() ? node.op_type + ":" + node.outputs[0] : node.name; }

/// "node 'conv1' (Conv, opset 9)"; nodes without a name go by their place and first output.
std::string PlaceOfNode(const OnnxGraph& graph, size_t index) {
  const OnnxNode& node = graph.nodes[index];
  std::string place = "node '" + node.name + "'";
  if (node.name.empty()) {
    place = "node " + std::to_string(index);
    if (!node.outputs.empty()) place += " giving '" + node.outputs[0] + "'";
  }
  return place + " (" + node.op_type + ", opset " + std::to_string(node.opset) + ")";
}

/// Recursion is as deep as bodies nest, which the message parser bounds.
void AppendNamesRead(const OnnxNode& node, std::vector<std::string>& names) {
  names.insert(names.end(), node.inputs.begin(), node.inputs.end());
  for (const auto& [attribute, value] : node.attributes) {
    const auto* body = std::get_if<std::shared_ptr<const OnnxGraph>>(&value);
    if (body == nullptr) continue;
    for (const OnnxNode& inner : (*body)->nodes) AppendNamesRead(inner, names);
    names.insert(names.end(), (*body)->outputs.begin(), (*body)->outputs.end());
  }
}

/// Of each node the names that no later one reads and that are no outputs.
std::vector<std::vector<std::string>> LastReads(const OnnxGraph& graph) {
  std::vector<std::vector<std::string>> last(graph.nodes.size());
  std::unordered_set<std::string> needed(graph.outputs.begin(), graph.outputs.end());
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    std::vector<std::string> names = NamesRead(graph.nodes[i]);
    names.insert(names.end(), graph.nodes[i].outputs.begin(), graph.nodes[i].outputs.end());
    for (std::string& name : names) {
      if (needed.insert(name).second) last[i].push_back(std::move(name));
    }
  }
  return last;
}

bool IsKnown(const Expr& value) {
  if (ConstantValue(value) != nullptr) return true;
  const Tuple* tuple = value->As<Tuple>();
  return tuple != nullptr && std::all_of(tuple->fields.begin(), tuple->fields.end(), IsKnown);
}

Expr ToExpr(const Value& value) {
  if (const Tensor* tensor = value.AsTensor()) return MakeConstant(*tensor);
  std::vector<Expr> fields;
  for (const Value& field : *value.AsTuple()) fields.push_back(ToExpr(field));
  return MakeTuple(std::move(fields));
}

}  // namespace

std::vector<std::string> NamesRead(const OnnxNode& node) {
  std::vector<std::string> names;
  AppendNamesRead(node, names);
  return names;
}

Status GraphReader::Define(const std::string& name, Expr value) {
  if (!values_.emplace(name, std::move(value)).second) return Fail("the name '" + name + "' is defined twice");
  return {};
}

Expr GraphReader::Find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : found->second;
}

Status GraphReader::DefineInitializers() {
  for (const auto& [name, tensor] : graph_.initializers) {
    // What is read again holds no more of the model.
    if (!outer_) model_.folder.Allow(static_cast<double>(tensor.ByteCount()));
    COLLAGE_TRY_STATUS(Define(name, MakeConstant(tensor)));
  }
  return {};
}

Status GraphReader::ReadNodes() {
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (unknown_ == UnknownValues::kComputed) {
      COLLAGE_TRY_STATUS(ComputeNode(i));
      continue;
    }
    Status status = unknown_ == UnknownValues::kLeftOut ? ReadOrLeaveOut(i) : ReadNode(i);
    if (!status) return Fail(status.error().At(PlaceOf(i)));
  }
  return {};
}

Status GraphReader::ReadOrLeaveOut(size_t index) {
  const std::vector<std::string> names = NamesRead(graph_.nodes[index]);
  if (std::any_of(names.begin(), names.end(), [&](const std::string& name) { return left_out_values_.contains(name); })) {
    LeaveOut(index);
    return {};
  }
  model_.folder.ForgetRequired();
  Status status = ReadNode(index);
  if (status || model_.folder.required() == nullptr) return status;
  if (left_out_.empty()) reason_ = status.error().At(PlaceOf(index)).message;
  LeaveOut(index);
  return {};
}

void GraphReader::LeaveOut(size_t index) {
  left_out_.push_back(index);
  for (const std::string& name : graph_.nodes[index].outputs) {
    if (!name.empty()) left_out_values_.insert(name);
  }
}

/// Reads a node whose inputs are all known, and computes what reading it has not.
Status GraphReader::ComputeNode(size_t index) {
  const auto compute = [&]() -> Status {
    model_.folder.ComputeWithin(static_cast<double>(UsableMemory()));
    COLLAGE_TRY_STATUS(ReadNode(index));
    std::vector<std::string> names;
    std::vector<Expr> open;
    for (const std::string& name : graph_.nodes[index].outputs) {
      const Expr value = name.empty() ? nullptr : Find(name);
      if (value == nullptr || IsKnown(value)) continue;
      names.push_back(name);
      open.push_back(value);
    }
    if (open.empty()) return {};
    IRModule module = model_.functions;
    module.Set("main", COLLAGE_TRY(MakeFunction({}, MakeTuple(std::move(open)))));
    const Value values = COLLAGE_TRY(Interpret(module, "main", {}));
    for (size_t i = 0; i < names.size(); ++i) values_[names[i]] = ToExpr((*values.AsTuple())[i]);
    return {};
  };
  if (Status status = compute(); !status) return Fail(status.error().At(PlaceOf(index)));
  ForgetBehind(index);
  return {};
}

void GraphReader::ForgetBehind(size_t index) {
  if (last_reads_.empty()) last_reads_ = LastReads(graph_);
  for (const std::string& name : last_reads_[index]) values_.erase(name);
}

Result<std::vector<Expr>> GraphReader::Outputs() {
  std::vector<Expr> outputs;
  for (const std::string& name : graph_.outputs) {
    const auto found = values_.find(name);
    if (found != values_.end() && found->second == nullptr) return Fail("output '" + name + "' is " + AbsentOutput(name));
    const Result<Expr> value = found != values_.end() || !outer_ ? Find(name) : Lookup(name);
    if (!value || *value == nullptr) return Fail("output '" + name + "' is given by no node, input or initializer");
    outputs.push_back(*value);
  }
  return outputs;
}

Result<ReadBody> GraphReader::Read(const OnnxGraph& body, const std::vector<Expr>& inputs) {
  model_.body_nodes += body.nodes.size() + 1;
  if (model_.body_nodes > kMostBodyNodes)
    return Fail("the bodies of the model have more than " + std::to_string(kMostBodyNodes) + " nodes where they are unrolled");
  if (body.inputs.size() != inputs.size()) {
    return Fail("its body has " + std::to_string(body.inputs.size()) + " inputs where " + std::to_string(inputs.size()) + " are right");
  }
  GraphReader reader(body, model_, this);
  for (size_t i = 0; i < inputs.size(); ++i) COLLAGE_TRY_STATUS(reader.Define(body.inputs[i].name, inputs[i]));
  COLLAGE_TRY_STATUS(reader.DefineInitializers());
  COLLAGE_TRY_STATUS(reader.ReadNodes());
  std::vector<Expr> outputs = COLLAGE_TRY(reader.Outputs());
  return ReadBody{std::move(outputs), std::move(reader.captured_)};
}

Status GraphReader::Check(const OnnxGraph& body) {
  std::unordered_set<std::string> given{""};
  for (const OnnxInput& input : body.inputs) given.insert(input.name);
  for (const auto& [name, tensor] : body.initializers) given.insert(name);
  for (size_t i = 0; i < body.nodes.size(); ++i) {
    COLLAGE_TRY_STATUS(CheckNode(body, i));
    for (const std::string& name : body.nodes[i].inputs) {
      if (given.contains(name)) continue;
      if (const Result<Expr> value = Lookup(name); !value) return Fail(value.error().At(PlaceOfNode(body, i)));
    }
    given.insert(body.nodes[i].outputs.begin(), body.nodes[i].outputs.end());
  }
  return {};
}

std::string GraphReader::PlaceOf(size_t index) const { return PlaceOfNode(graph_, index); }

Status CheckNode(const OnnxGraph& graph, size_t index) {
  const OnnxNode& node = graph.nodes[index];
  if (const Result<const ReadRow*> row = RowOf(node); !row) return Fail(row.error().At(PlaceOfNode(graph, index)));
  for (const auto& [attribute, value] : node.attributes) {
    const auto* body = std::get_if<std::shared_ptr<const OnnxGraph>>(&value);
    for (size_t i = 0; body != nullptr && i < (*body)->nodes.size(); ++i) COLLAGE_TRY_STATUS(CheckNode(**body, i));
  }
  return {};
}

Result<Expr> GraphReader::Lookup(const std::string& name) {
  if (name.empty()) return Expr();
  const auto found = values_.find(name);
  if (found != values_.end() && found->second == nullptr) return Fail("reads '" + name + "', " + AbsentOutput(name));
  if (found != values_.end()) return found->second;
  if (outer_ == nullptr) return Fail("reads '" + name + "', which no input, initializer or earlier node gives");
  Expr& captured = captured_by_name_[name];
  if (captured == nullptr) {
    captured = COLLAGE_TRY(outer_->Lookup(name));
    captured_.push_back(captured);
  }
  return captured;
}

/// What an optional output that no row of the table makes is called in errors.
std::string GraphReader::AbsentOutput(const std::string& name) const {
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const std::vector<std::string>& outputs = graph_.nodes[i].outputs;
    if (std::find(outputs.begin(), outputs.end(), name) != outputs.end())
      return "an optional output of " + PlaceOf(i) + " that is not supported";
  }
  return "an optional output that is not supported";
}

Status GraphReader::ReadNode(size_t index) {
  const OnnxNode& node = graph_.nodes[index];
  const std::string op = TableName(node);
  const ReadRow* row = COLLAGE_TRY(RowOf(node));
  std::vector<Expr> inputs;
  for (const std::string& name : node.inputs) inputs.push_back(COLLAGE_TRY(Lookup(name)));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    const TensorType* tensor = inputs[i]->type().AsTensor();
    if (tensor && tensor->dtype == DType::kString && !TakesStrings(op))
      return Fail("reads '" + node.inputs[i] + "', which is of strings; this operator takes numbers");
    if (!tensor && !row->takes_sequences)
      return Fail("reads '" + node.inputs[i] + "', which is " + (IsNothing(inputs[i]) ? "an optional without a value" : "a sequence") +
                  "; this operator takes tensors");
  }
  if (node.outputs.empty()) return Fail("has no output");
  const Origin origin({OriginPart::Kind::kOnnxNode, NameOf(node), node.place});
  NodeReader reader(node.op_type, node.opset, inputs, node.attributes, node.outputs.size(), &model_.folder, this, origin);
  const std::vector<Expr> outputs = COLLAGE_TRY(row->read(reader));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    COLLAGE_TRY_STATUS(Define(node.outputs[i], i < outputs.size() ? WithNode(outputs[i], inputs, origin) : nullptr));
  }
  return {};
}

}  // namespace collage::onnx_io
