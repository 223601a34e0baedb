#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collage/ir/op_sequence.h"
#include "collage/support/result.h"

namespace collage::cudnn {

enum class Operation {
  kConvolution,
  kTransposedConvolution,  ///< the gradient of a convolution with respect to its data
  kMaxPooling,
  kAveragePooling,             ///< of what the window meets of the data
  kAveragePoolingWithPadding,  ///< padding counts in the divisor
};

/// What is computed of a sum before it is stored.
enum class ActivationKind { kNone, kRelu, kSigmoid, kTanh, kSwish, kGeluByErf, kGeluByTanh };

struct Activation {
  ActivationKind kind = ActivationKind::kNone;
  double slope = 0;                  ///< kRelu: of what is negative
  std::optional<double> upper = {};  ///< kRelu: an upper bound
};

/// It relates the larger plane of an operation to the smaller one. All have a number for each spatial dimension, outermost first.
struct SlidingWindow {
  std::vector<int64_t> kernel;
  std::vector<int64_t> stride;
  std::vector<int64_t> dilation;
  std::vector<int64_t> pad_begin;
  std::vector<int64_t> pad_end;
};

/// A function as cuDNN sees it: result = activation(operation(data, weight) + added + bias), of data in NCHW or NCDHW. Numbers of tensors
/// are indices into the sequence's values.
struct Layer {
  Operation operation;
  SlidingWindow window;
  size_t data;
  std::optional<size_t> weight;      ///< of convolutions
  std::optional<size_t> added = {};  ///< of the result's shape; a parameter or a constant
  std::optional<size_t> bias = {};   ///< a constant, one number for each channel
  Activation activation = {};
  size_t result;
  DType dtype;  ///< of all tensors: float32 or float16
  /// Factors of float32 are rounded to the 10 bits that tensor cores multiply (TF32), by permit.
  bool in_tf32 = false;

  [[nodiscard]] bool HasTail() const { return added || bias || activation.kind != ActivationKind::kNone; }
};

/// What one graph of cuDNN computes of a function; errors say what none does.
Result<Layer> RecogniseLayer(const OpSequence& sequence);

}  // namespace collage::cudnn
