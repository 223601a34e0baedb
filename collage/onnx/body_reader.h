#pragma once

#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/onnx/graph.h"

namespace collage::onnx_io {

/// What a body gives for certain inputs.
struct ReadBody {
  std::vector<Expr> outputs;
  std::vector<Expr> captured;  ///< values of the graphs around it that it reads, each once
};

/// Reads the bodies of a node of control flow, as often and for whatever inputs its row wants.
class BodyReader {
 public:
  virtual ~BodyReader() = default;

  /// Errors are located at the nodes of the body, or say that the bodies of the model were read too often.
  virtual Result<ReadBody> Read(const OnnxGraph& body, const std::vector<Expr>& inputs) = 0;
  /// Errors that a body has whatever it is given: operators that are not supported, names that nobody gives a value. They name the node.
  virtual Status Check(const OnnxGraph& body) = 0;
  /// A name for a function of the module that begins with `hint`.
  virtual std::string FreshName(const std::string& hint) = 0;
  virtual void AddFunction(const std::string& name, Expr function) = 0;
};

}  // namespace collage::onnx_io
