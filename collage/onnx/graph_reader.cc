#include "collage/onnx/graph_reader.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "collage/onnx/node_reader.h"
#include "collage/onnx/rows.h"
#include "collage/onnx/sequence.h"

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
                                                           "ai.onnx.ml.LabelEncoder"};
  return ops.contains(op);
}

/// As Netron shows it; a node without a name goes by its operator and first output: "Conv:12".
std::string NameOf(const OnnxNode& node) { return node.name.empty() ? node.op_type + ":" + node.outputs[0] : node.name; }

}  // namespace

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
    if (Status status = ReadNode(i); !status) return Fail(status.error().At(PlaceOf(i)));
  }
  return {};
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

/// "node 'conv1' (Conv, opset 9)"; nodes without a name go by their place and first output.
std::string GraphReader::PlaceOf(size_t index) const {
  const OnnxNode& node = graph_.nodes[index];
  std::string place = "node '" + node.name + "'";
  if (node.name.empty()) {
    place = "node " + std::to_string(index);
    if (!node.outputs.empty()) place += " giving '" + node.outputs[0] + "'";
  }
  return place + " (" + node.op_type + ", opset " + std::to_string(node.opset) + ")";
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
  const std::string op = node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
  const ReadRow* row = FindReadRow(op);
  if (row == nullptr) {
    return Fail("this operator" + (node.domain.empty() ? "" : " of the domain '" + node.domain + "'") + " is not supported");
  }
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
