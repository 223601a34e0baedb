#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "collage/ir/module.h"
#include "collage/onnx/body_reader.h"
#include "collage/onnx/fold.h"
#include "collage/onnx/graph.h"
#include "collage/support/name_supply.h"

namespace collage::onnx_io {

/// What all graphs of one model share while they are read.
struct ModelReading {
  ConstantFolder folder;
  IRModule functions;  ///< made of bodies; some may be called by nobody in the end
  NameSupply names;
  size_t body_nodes = 0;  ///< that have been read, each as often as it was
};

/// What becomes of nodes whose results have types that depend on values.
enum class UnknownValues {
  kRefused,   ///< they are errors
  kLeftOut,   ///< they are left out, and with them whatever reads what they give: remainder.h
  kComputed,  ///< all values are known: each node is computed as it is read, however much work that is
};

/// The names that a node reads, those in its bodies included (and names that only its bodies know).
std::vector<std::string> NamesRead(const OnnxNode& node);

/// Errors where a node, or one in its bodies, is of an operator that is not supported; they name that node.
Status CheckNode(const OnnxGraph& graph, size_t index);

/// Turns the nodes of one graph into expressions, in their order, which is topological.
class GraphReader : public BodyReader {
 public:
  /// `outer` is the graph around a body, null for the model's. All must outlive this. `unknown` is of the model's own nodes; one whose body
  /// cannot be read is treated as a whole.
  GraphReader(const OnnxGraph& graph, ModelReading& model, GraphReader* outer, UnknownValues unknown = UnknownValues::kRefused)
      : graph_(graph), model_(model), outer_(outer), unknown_(unknown) {}

  /// Errors when the name is taken in this graph.
  Status Define(const std::string& name, Expr value);
  /// The value of a name of this graph; null where there is none, or its operator does not give it.
  [[nodiscard]] Expr Find(const std::string& name) const;
  Status DefineInitializers();
  /// Errors name the node.
  Status ReadNodes();
  /// One node by itself: whoever calls this sees to their order. Errors do not name it.
  Status ReadNode(size_t index);
  /// The same with all that it reads known (UnknownValues::kComputed). Errors name the node. Values that no later node reads are forgotten.
  Status ComputeNode(size_t index);
  /// Forgets what the node is the last to read, or gives to nobody.
  void ForgetBehind(size_t index);
  /// Gives a name that may have a value another one.
  void Redefine(const std::string& name, Expr value) { values_[name] = std::move(value); }
  [[nodiscard]] Result<std::vector<Expr>> Outputs();

  /// Numbers of the nodes that were left out, ascending.
  [[nodiscard]] const std::vector<size_t>& left_out() const { return left_out_; }
  /// Whether one of them gives this value.
  [[nodiscard]] bool IsLeftOut(const std::string& value) const { return left_out_values_.contains(value); }
  /// Why the first of them was.
  [[nodiscard]] const std::string& reason() const { return reason_; }

  Result<ReadBody> Read(const OnnxGraph& body, const std::vector<Expr>& inputs) override;
  Status Check(const OnnxGraph& body) override;
  std::string FreshName(const std::string& hint) override { return model_.names.Fresh(hint); }
  void AddFunction(const std::string& name, Expr function) override { model_.functions.Set(name, std::move(function)); }

  /// "node 'conv1' (Conv, opset 9)", as errors say it.
  [[nodiscard]] std::string PlaceOf(size_t index) const;

 private:
  [[nodiscard]] std::string AbsentOutput(const std::string& name) const;
  Result<Expr> Lookup(const std::string& name);
  Status ReadOrLeaveOut(size_t index);
  void LeaveOut(size_t index);

  const OnnxGraph& graph_;
  ModelReading& model_;
  GraphReader* outer_;
  std::unordered_map<std::string, Expr> values_;  // null: an output that is not supported
  std::vector<Expr> captured_;
  std::unordered_map<std::string, Expr> captured_by_name_;
  UnknownValues unknown_;
  std::vector<size_t> left_out_;
  std::unordered_set<std::string> left_out_values_;
  std::string reason_;
  std::vector<std::vector<std::string>> last_reads_;  // where values are computed: of each node, names that nothing reads behind it
};

}  // namespace collage::onnx_io
