#pragma once

#include <string>
#include <unordered_map>
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

/// Turns the nodes of one graph into expressions, in their order, which ONNX demands to be topological.
class GraphReader : public BodyReader {
 public:
  /// `outer` is the graph around a body, null for the model's. All must outlive this.
  GraphReader(const OnnxGraph& graph, ModelReading& model, GraphReader* outer) : graph_(graph), model_(model), outer_(outer) {}

  /// Errors when the name is taken in this graph.
  Status Define(const std::string& name, Expr value);
  /// The value of a name of this graph; null where there is none, or its operator does not give it.
  [[nodiscard]] Expr Find(const std::string& name) const;
  Status DefineInitializers();
  /// Errors name the node.
  Status ReadNodes();
  [[nodiscard]] Result<std::vector<Expr>> Outputs();

  Result<ReadBody> Read(const OnnxGraph& body, const std::vector<Expr>& inputs) override;
  std::string FreshName(const std::string& hint) override { return model_.names.Fresh(hint); }
  void AddFunction(const std::string& name, Expr function) override { model_.functions.Set(name, std::move(function)); }

 private:
  [[nodiscard]] std::string PlaceOf(size_t index) const;
  [[nodiscard]] std::string AbsentOutput(const std::string& name) const;
  Result<Expr> Lookup(const std::string& name);
  Status ReadNode(size_t index);

  const OnnxGraph& graph_;
  ModelReading& model_;
  GraphReader* outer_;
  std::unordered_map<std::string, Expr> values_;  // null: an output that is not supported
  std::vector<Expr> captured_;
  std::unordered_map<std::string, Expr> captured_by_name_;
};

}  // namespace collage::onnx_io
