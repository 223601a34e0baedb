#include <type_traits>

#include "collage/op/axis_view.h"
#include "collage/op/binary_kernel.h"
#include "collage/op/kernels.h"
#include "collage/op/matrix_product.h"
#include "collage/op/product_kernel.h"
#include "collage/support/check.h"

namespace collage {
namespace {

/// A matrix in memory, read by rows of doubles.
template <class T>
struct MatrixView {
  const T* data;
  int64_t row_stride;
  int64_t column_stride;

  void Read(int64_t row, int64_t first, int64_t count, double* out) const {
    const T* from = data + row * row_stride + first * column_stride;
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<double>(from[i * column_stride]);
  }
};

template <class T>
void MultiplyMatrices(int64_t rows, int64_t columns, int64_t depth, const MatrixView<T>& a, const MatrixView<T>& b, T* result,
                      int64_t row_stride, int64_t column_stride) {
  BlockedProduct product{rows, columns, depth, {}, {}, {}};
  product.left = [&](int64_t row, int64_t first, int64_t count, double* out) { a.Read(row, first, count, out); };
  product.right = [&](int64_t k, int64_t first, int64_t count, double* out) { b.Read(k, first, count, out); };
  product.store = [&](int64_t row, int64_t first, int64_t count, const double* values) {
    T* target = result + row * row_stride + first * column_stride;
    for (int64_t i = 0; i < count; ++i) target[i * column_stride] = static_cast<T>(values[i]);
  };
  Compute(product);
}

/// Integers wrap around, so the sum is one of uint64_t.
template <class T>
void MultiplyIntegers(const MatrixProduct& p, const MatrixView<T>& a, const MatrixView<T>& b, T* result) {
  for (int64_t row = 0; row < p.rows; ++row) {
    for (int64_t column = 0; column < p.columns; ++column) {
      uint64_t sum = 0;
      for (int64_t k = 0; k < p.depth; ++k) {
        sum += static_cast<uint64_t>(a.data[row * a.row_stride + k * a.column_stride]) *
               static_cast<uint64_t>(b.data[k * b.row_stride + column * b.column_stride]);
      }
      result[row * p.columns + column] = static_cast<T>(sum);
    }
  }
}

template <class T>
void MultiplyBatch(const MatrixProduct& p, const T* a, const T* b, T* result) {
  const int64_t size_a = p.rows * p.depth;
  const int64_t size_b = p.depth * p.columns;
  const auto multiply = [&](int64_t target, int64_t place_a, int64_t place_b) {
    const MatrixView<T> left{a + place_a * size_a, p.transpose_a ? 1 : p.depth, p.transpose_a ? p.rows : 1};
    const MatrixView<T> right{b + place_b * size_b, p.transpose_b ? 1 : p.columns, p.transpose_b ? p.depth : 1};
    T* matrix = result + target * p.rows * p.columns;
    if constexpr (std::is_integral_v<T>) return MultiplyIntegers(p, left, right, matrix);
    if (p.rows >= p.columns || !p.transpose_b) {
      MultiplyMatrices(p.rows, p.columns, p.depth, left, right, matrix, p.columns, 1);
      return;
    }
    // Few rows of data against many of a weight: computed as its transpose, so that the weight is read along its rows.
    const MatrixView<T> weight{right.data, right.column_stride, right.row_stride};
    const MatrixView<T> data{left.data, left.column_stride, left.row_stride};
    MultiplyMatrices(p.columns, p.rows, p.depth, weight, data, matrix, int64_t{1}, p.columns);
  };
  ForEachRow(p.batch, BroadcastStrides(p.batch_a, p.batch), BroadcastStrides(p.batch_b, p.batch),
             [&](int64_t target, int64_t place_a, int64_t place_b, int64_t count, int64_t step_a, int64_t step_b) {
               for (int64_t i = 0; i < count; ++i) multiply(target + i, place_a + i * step_a, place_b + i * step_b);
             });
}

void Multiply(const Result<MatrixProduct>& product, Inputs inputs, Outputs outputs) {
  COLLAGE_CHECK(product.has_value());
  VisitNumberType(inputs[0].dtype(), [&](auto element) {
    using T = decltype(element);
    MultiplyBatch(*product, inputs[0].Data<T>(), inputs[1].Data<T>(), outputs[0].MutableData<T>());
  });
}

}  // namespace

void ReferenceDense(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  Multiply(ReadDense(inputs[0].type(), inputs[1].type(), attributes), inputs, outputs);
}

void ReferenceMatmul(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  Multiply(ReadMatmul(inputs[0].type(), inputs[1].type(), attributes), inputs, outputs);
}

void ReferenceBatchMatmul(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  Multiply(ReadBatchMatmul(inputs[0].type(), inputs[1].type(), attributes), inputs, outputs);
}

}  // namespace collage
