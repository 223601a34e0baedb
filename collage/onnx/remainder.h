#pragma once

// What of a model has no types before it runs. Where the extents of a value depend on data (NonMaxSuppression, NonZero, a slice whose ends
// are computed), nobody can say what the operators behind it take. So the model is cut there: what lies before is a module like any
// other, its head, and what lies behind stays as it came, nodes of ONNX. After each run of the head these are read once more, with all
// values known, and computed by the reference kernels on the way. So whatever the reader reads works here, and types need no unknown
// extents anywhere.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

namespace onnx_io {
struct OnnxGraph;
}  // namespace onnx_io

class Remainder {
 public:
  /// What the head gives under one name: a tensor, or the tensors of a sequence.
  struct Input {
    std::string name;
    std::optional<size_t> length;  ///< of a sequence
  };
  struct Output {
    std::string name;
    DType dtype;
    std::optional<Shape> shape;  ///< -1 where only a run tells the extent; absent where not even the rank is known
  };
  /// All that is kept of it.
  struct Parts {
    std::string message;  ///< a model of the nodes, without weights; its outputs are those of the whole model
    std::vector<Input> inputs;
    std::vector<std::pair<std::string, Tensor>> weights;  ///< constants that the nodes read
    std::string reason;                                   ///< why the first node has no types, located at it
  };

  /// Errors where the message is no model, or an output has no element type.
  static Result<std::shared_ptr<const Remainder>> Create(Parts parts);
  ~Remainder();
  Remainder(const Remainder&) = delete;
  Remainder& operator=(const Remainder&) = delete;

  [[nodiscard]] const Parts& parts() const { return parts_; }
  [[nodiscard]] const std::vector<Output>& outputs() const { return outputs_; }
  [[nodiscard]] size_t node_count() const;
  /// "12 nodes, since extents depend on data: node 'nms' (NonMaxSuppression, opset 11): ..."
  [[nodiscard]] std::string Summary() const;

  /// Computes the outputs from what the head gives. May be called by several threads at once. Errors name the node.
  [[nodiscard]] Result<std::vector<Tensor>> Run(std::span<const Tensor> inputs) const;

 private:
  Remainder(Parts parts, std::unique_ptr<const onnx_io::OnnxGraph> graph, std::vector<Output> outputs);

  Parts parts_;
  std::unique_ptr<const onnx_io::OnnxGraph> graph_;
  std::vector<Output> outputs_;
};

}  // namespace collage
