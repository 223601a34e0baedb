#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "collage/onnx/node_reader.h"
#include "collage/onnx/node_writer.h"

// Rows for operators that mean the same on both sides: the same inputs, no attributes.

namespace collage::onnx_io {

/// A string literal as a template argument.
struct OperatorName {
  char text[32] = {};

  template <size_t N>
  consteval OperatorName(const char (&literal)[N]) {  // NOLINT(google-explicit-constructor)
    std::copy_n(literal, N, text);
  }
};

template <OperatorName op>
Result<std::vector<Expr>> ReadDirect(NodeReader& node) {
  return std::vector<Expr>{COLLAGE_TRY(node.Call(op.text, COLLAGE_TRY(node.Inputs())))};
}

/// Those that are not given are null.
inline Result<std::vector<Expr>> AllInputs(NodeReader& node) {
  std::vector<Expr> inputs;
  for (size_t i = 0; i < node.input_count(); ++i) inputs.push_back(node.HasInput(i) ? COLLAGE_TRY(node.Input(i)) : Expr());
  return inputs;
}

/// An operator of another domain that the default one has too.
template <OperatorName op_type>
Result<std::vector<Expr>> ReadAsDefault(NodeReader& node) {
  return node.ReadAs(op_type.text, COLLAGE_TRY(AllInputs(node)));
}

template <OperatorName op_type>
Status WriteDirect(NodeWriter& writer) {
  writer.Emit(op_type.text, writer.Inputs());
  return {};
}

}  // namespace collage::onnx_io
