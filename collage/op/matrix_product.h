#pragma once

// Geometry of nn.dense, nn.matmul and nn.batch_matmul, read once from types and attributes.

#include "collage/ir/attributes.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor_type.h"

namespace collage {

/// result[batch.., m, n] = sum over k of a[batch.., m, k] * b[batch.., k, n], where each batch shape broadcasts to `batch`.
struct MatrixProduct {
  Shape batch;
  Shape batch_a;
  Shape batch_b;
  int64_t rows;     ///< m
  int64_t columns;  ///< n
  int64_t depth;    ///< k
  bool transpose_a;
  bool transpose_b;
};

/// Each checks every constraint on shapes; after a call has been made they cannot fail on its arguments.
/// nn.dense: all leading dimensions of the data are rows, `batch` is empty, b is transposed.
Result<MatrixProduct> ReadDense(const TensorType& data, const TensorType& weight, const Attributes& attributes);
Result<MatrixProduct> ReadMatmul(const TensorType& a, const TensorType& b, const Attributes& attributes);
Result<MatrixProduct> ReadBatchMatmul(const TensorType& a, const TensorType& b, const Attributes& attributes);

/// The same product with the matrices of a taken as one, where they lie one below the other and b is one matrix.
MatrixProduct WithJoinedRows(MatrixProduct product);

}  // namespace collage
