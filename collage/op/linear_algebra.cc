#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "collage/op/axis_view.h"
#include "collage/op/families.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

Result<TensorType> SquareMatrices(TypeArguments arguments) {
  TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
  COLLAGE_TRY_STATUS(ExpectFloat(data, "data"));
  COLLAGE_TRY_STATUS(ExpectRankAtLeast(data, "data", 2));
  const size_t rank = data.shape.size();
  if (data.shape[rank - 1] != data.shape[rank - 2]) return Fail("data has shape " + ToString(data.shape) + ", expected square matrices");
  return data;
}

Result<Type> DeterminantType(TypeArguments arguments, const Attributes&) {
  TensorType data = COLLAGE_TRY(SquareMatrices(arguments));
  data.shape.resize(data.shape.size() - 2);
  return Type(std::move(data));
}

Result<Type> InverseType(TypeArguments arguments, const Attributes&) { return Type(COLLAGE_TRY(SquareMatrices(arguments))); }

/// n rows of so many columns.
struct Matrix {
  size_t n;
  size_t columns;
  std::vector<double> elements;

  double& At(size_t row, size_t column) { return elements[row * columns + column]; }

  /// Brings the largest of the rows from `column` on, by that column, to its place; whether another one was there.
  bool BringPivot(size_t column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < n; ++row) {
      if (std::abs(At(row, column)) > std::abs(At(pivot, column))) pivot = row;
    }
    if (pivot != column) std::swap_ranges(&At(pivot, 0), &At(pivot, 0) + columns, &At(column, 0));
    return pivot != column;
  }

  /// Takes so many times the pivot's row, from the pivot on, from another.
  void Eliminate(size_t row, size_t pivot) {
    const double factor = At(row, pivot) / At(pivot, pivot);
    for (size_t k = pivot; k < columns; ++k) At(row, k) -= factor * At(pivot, k);
  }
};

/// By Gaussian elimination with the largest pivot of each column.
double Determinant(Matrix matrix) {
  double determinant = 1;
  for (size_t column = 0; column < matrix.n; ++column) {
    if (matrix.BringPivot(column)) determinant = -determinant;
    const double pivot = matrix.At(column, column);
    if (pivot == 0) return 0;
    determinant *= pivot;
    for (size_t row = column + 1; row < matrix.n; ++row) matrix.Eliminate(row, column);
  }
  return determinant;
}

/// The same beside the unit matrix, above the pivots as well; of a singular matrix no finite numbers.
std::vector<double> Inverse(const double* data, size_t n) {
  Matrix matrix{n, 2 * n, std::vector<double>(2 * n * n)};
  for (size_t row = 0; row < n; ++row) {
    std::copy_n(data + row * n, n, &matrix.At(row, 0));
    matrix.At(row, n + row) = 1;
  }
  for (size_t column = 0; column < n; ++column) {
    matrix.BringPivot(column);
    for (size_t row = 0; row < n; ++row) {
      if (row != column) matrix.Eliminate(row, column);
    }
  }
  std::vector<double> inverse;
  for (size_t row = 0; row < n; ++row) {
    for (size_t column = n; column < 2 * n; ++column) inverse.push_back(matrix.At(row, column) / matrix.At(row, row));
  }
  return inverse;
}

/// use(matrix, index, n) for each matrix of the data.
template <class Use>
void ForEachMatrix(const Tensor& data, const Use& use) {
  const auto n = static_cast<size_t>(data.shape().back());
  const std::vector<double> elements = data.ToDouble();
  const auto count = static_cast<size_t>(ElementCount(Shape(data.shape().begin(), data.shape().end() - 2)));
  for (size_t i = 0; i < count; ++i) use(elements.data() + i * n * n, i, n);
}

void DeterminantKernel(std::span<const Tensor> inputs, const Attributes&, std::span<Tensor> outputs) {
  VisitFloatType(inputs[0].dtype(), [&](auto element) {
    using T = decltype(element);
    T* result = outputs[0].MutableData<T>();
    ForEachMatrix(inputs[0], [&](const double* matrix, size_t i, size_t n) {
      result[i] = static_cast<T>(Determinant({n, n, {matrix, matrix + n * n}}));
    });
  });
}

void InverseKernel(std::span<const Tensor> inputs, const Attributes&, std::span<Tensor> outputs) {
  VisitFloatType(inputs[0].dtype(), [&](auto element) {
    using T = decltype(element);
    T* result = outputs[0].MutableData<T>();
    ForEachMatrix(inputs[0], [&](const double* matrix, size_t i, size_t n) {
      for (size_t k = 0; const double number : Inverse(matrix, n)) result[i * n * n + k++] = static_cast<T>(number);
    });
  });
}

/// So many operations for each element of a matrix and each of its rows.
OpDef::WorkRule WorkOfElimination(double operations) {
  return [operations](TypeArguments arguments, const Type& result, const Attributes&) -> Work {
    return {operations * ElementCount(arguments[0]) * static_cast<double>(arguments[0].AsTensor()->shape.back()),
            ByteCount(arguments[0]) + ByteCount(result)};
  };
}

}  // namespace

void AddLinearAlgebraOperators(OpTable& table) {
  Register(table, {.name = "linalg.det",
                   .summary = "Determinant of the matrices in the last two dimensions.",
                   .argument_names = {"data"},
                   .kind = OpKind::kOpaque,
                   .infer_type = DeterminantType,
                   .work = WorkOfElimination(1),
                   .reference = DeterminantKernel});
  Register(table, {.name = "linalg.inv",
                   .summary = "Inverse of the matrices in the last two dimensions; no finite numbers where there is none.",
                   .argument_names = {"data"},
                   .kind = OpKind::kOpaque,
                   .infer_type = InverseType,
                   .work = WorkOfElimination(2),
                   .reference = InverseKernel});
}

}  // namespace collage
