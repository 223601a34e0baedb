#pragma once

// The model as it came, for graph compilers: what they make of the original is often faster than what they make of our form of it
// written as ONNX again. It travels inside of functions (ir/original_model.h).

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/onnx/model_bytes.h"
#include "collage/onnx/reader.h"
#include "collage/support/result.h"

namespace collage {

/// A model taken apart into nodes and weights.
struct OriginalModel {
  /// The model without weights, names of places in the exporter's source and shapes in between. Its graph lists as inputs the model's own,
  /// then what were its initializers; only the latter may be what a node of type Constant gave.
  std::string message;
  std::vector<std::string> input_names;  ///< the model's own
  std::vector<Tensor> weights;           ///< in the order of the inputs behind those
};

/// `bytes` are of a model whose graph was read as `graph`, whose tensors are shared. Errors say why a compiler cannot be given it.
Result<OriginalModel> TakeApart(std::string_view bytes, const onnx_io::OnnxGraph& graph);

/// What of a model gives certain values that its nodes give, which become its outputs. Errors where no node gives one.
Result<OriginalModel> HeadOf(const OriginalModel& original, const std::vector<std::string>& outputs);

/// A function that carries a model which has `original`: of the model's inputs `inputs`, by their position, which gives its outputs
/// `outputs`. Inputs that are not named are zero: nobody may read them. `attributes` are the function's. Errors when the model's own
/// function is not of operators alone.
Result<Expr> CarryOriginal(const OnnxModel& model, const std::vector<size_t>& inputs, const std::vector<size_t>& outputs,
                           const Attributes& attributes);

/// What a graph compiler is given: an ONNX model of static shapes.
struct OnnxForm {
  std::string bytes;
  std::vector<std::string> input_names;  ///< of the function's parameters, in order
  std::vector<std::string> output_names;
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
  /// Large weights, which are not in the bytes: the function's own memory. Whoever uses that must keep these.
  std::vector<std::pair<std::string, Tensor>> weights;
};
using onnx_io::LargeWeightsAs;
/// The function written as ONNX (writer.h).
Result<OnnxForm> RewrittenForm(const Function& function, LargeWeightsAs large = LargeWeightsAs::kBytes);
/// The model that the function carries. Errors when it carries none, or one that was damaged.
Result<OnnxForm> OriginalForm(const Function& function, LargeWeightsAs large = LargeWeightsAs::kBytes);

}  // namespace collage
