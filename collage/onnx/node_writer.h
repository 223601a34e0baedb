#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collage/ir/op_sequence.h"
#include "collage/onnx/attribute.h"

namespace collage::onnx_io {

class GraphWriter;

/// From here on reductions take their axes as an input; ReduceSum since 13.
inline constexpr int64_t kOpsetOfAxesAsInput = 18;

/// One step of an operator sequence while it is turned into ONNX nodes.
class NodeWriter {
 public:
  NodeWriter(GraphWriter* graph, size_t step) : graph_(graph), step_(step) {}

  [[nodiscard]] const OpSequence::Step& step() const;
  [[nodiscard]] const Attributes& attributes() const { return step().attributes; }
  /// Of WriteOptions.
  [[nodiscard]] int64_t opset() const;
  [[nodiscard]] bool is_complete() const;
  [[nodiscard]] size_t input_count() const { return step().inputs.size(); }
  [[nodiscard]] const TensorType& InputType(size_t index) const;
  [[nodiscard]] const TensorType& OutputType(size_t index = 0) const;
  /// Null when the input is not constant.
  [[nodiscard]] const Tensor* InputConstant(size_t index) const;
  /// The step that gives an input; nothing for parameters and constants.
  [[nodiscard]] std::optional<NodeWriter> Producer(size_t index) const;
  /// The ONNX name of an input.
  [[nodiscard]] std::string Input(size_t index) const;
  [[nodiscard]] std::vector<std::string> Inputs() const;

  /// The name of a new initializer, which describes the operator.
  std::string Initializer(const Tensor& value);
  /// Likewise of one that stands for a constant of the sequence.
  std::string Weight(const Tensor& value);
  std::string Ints(const std::vector<int64_t>& values);
  std::string Scalar(double value, DType dtype);

  /// A node that gives output `index` of the step.
  void Emit(const std::string& op_type, const std::vector<std::string>& inputs, const OnnxAttributes& attributes = {}, size_t output = 0);
  /// A node that gives all outputs of the step.
  void EmitAll(const std::string& op_type, const std::vector<std::string>& inputs, const OnnxAttributes& attributes = {});
  /// A node that gives an intermediate tensor; its name.
  std::string EmitIntermediate(const std::string& op_type, const std::vector<std::string>& inputs, const OnnxAttributes& attributes = {});

  /// True when output `index` is used by a later step or is a result.
  [[nodiscard]] bool OutputIsUsed(size_t index) const;
  /// When the only use of the step's output is an nn.bias_add along `axis` with a constant bias: the bias's name, and from
  /// now on this step gives what the addition gives.
  std::optional<std::string> AbsorbBias(int64_t axis);

 private:
  GraphWriter* graph_;
  size_t step_;
};

}  // namespace collage::onnx_io
