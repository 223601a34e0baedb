#pragma once

#include <optional>
#include <vector>

#include "collage/ir/op_sequence.h"

namespace collage::openblas {

/// result = a x b over batches of row-major matrices, then a bias for each column, then ReLU.
struct Product {
  struct Operand {
    size_t value;                  ///< index into the sequence's values
    bool transposed;               ///< as stored, against what is multiplied
    int64_t stride;                ///< elements from row to row as stored
    std::vector<int64_t> offsets;  ///< of each batch's matrix
  };
  Operand a;
  Operand b;
  int64_t rows, depth, columns;
  std::optional<size_t> bias;
  bool relu = false;
  size_t result;
};

/// Errors on what is not one product of float32 tensors, with at most a bias and a ReLU after it.
Result<Product> RecogniseProduct(const OpSequence& sequence);

}  // namespace collage::openblas
