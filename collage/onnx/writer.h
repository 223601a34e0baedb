#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/support/result.h"

namespace collage {

namespace onnx_io {
struct WeightsBeside;
}

/// The operator set that is written: the oldest with LayerNormalization, so what any runtime in use can read.
inline constexpr int64_t kWrittenOpset = 17;
/// The oldest with operators on strings.
inline constexpr int64_t kOpsetOfStrings = 20;

struct WriteOptions {
  /// One name a tensor parameter (tuples flattened). Empty: p0, p1, ...
  std::vector<std::string> input_names;
  /// One name a tensor of the result. Empty: r0, r1, ...
  std::vector<std::string> output_names;
  std::string graph_name = "collage";
  /// A younger one is written where an operator came in that.
  int64_t opset = kWrittenOpset;
  /// Whatever ONNX can say is written, for people and other tools: strings, and products of integers, which graph compilers are not given
  /// (they would be slow, or another meaning of saturation).
  bool is_complete = false;
  /// Gets large weights, which are not copied into the bytes then (onnx/model_bytes.h); null: all are.
  onnx_io::WeightsBeside* beside = nullptr;
};

/// The bytes of an ONNX model that computes a straight-line function. Function literals are inlined, constants become
/// initializers, and an addition of a bias that only a convolution or dense feeds becomes that node's own bias, which is
/// the form graph compilers expect. Errors on what is not straight-line, on operators without an ONNX form, and over 2 GiB
/// (the limit of the format).
Result<std::string> WriteOnnx(const Function& function, const WriteOptions& options = {});

/// The oldest operator set, from kWrittenOpset on, that has what is written for all operators of an expression.
int64_t WrittenOpset(const Expr& expr);

/// Names of the operators of the table that WriteOnnx cannot express.
std::vector<std::string> OperatorsWithoutOnnxForm();

}  // namespace collage
