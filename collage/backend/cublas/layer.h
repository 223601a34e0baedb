#pragma once

#include <cstdint>
#include <optional>

#include "collage/ir/op_sequence.h"
#include "collage/support/result.h"

namespace collage::cublas {

/// What the library computes behind a sum before it writes it.
enum class Activation { kNone, kRelu, kGeluByTanh };

/// result[batch, m, n] = activation(factor * sum over k of a[batch, m, k] * b[batch, k, n] + added[batch, m, n] + bias[n]), all row-major.
/// Numbers of tensors are indices into the sequence's values.
struct Layer {
  /// The matrices of an operand.
  struct Operand {
    size_t value;
    bool transposed;  ///< as stored, against what is multiplied
    int64_t step;     ///< elements from the matrix of one batch to that of the next; 0: all batches have the same
  };
  Operand a;
  Operand b;
  int64_t batches = 1;
  int64_t rows;     ///< m
  int64_t columns;  ///< n
  int64_t depth;    ///< k
  double factor = 1;
  std::optional<size_t> bias = {};   ///< a constant
  std::optional<size_t> added = {};  ///< of the result's shape; a parameter or a constant
  Activation activation = Activation::kNone;
  size_t result;
  DType dtype;  ///< of all tensors: float32 or float16
  /// Factors of float32 are rounded to the 10 bits that tensor cores multiply (TF32), by permit.
  bool in_tf32 = false;
};

/// What cuBLASLt computes of a function in one call; errors say what it does not.
Result<Layer> RecogniseLayer(const OpSequence& sequence);

}  // namespace collage::cublas
