#include "collage/op/matrix_product.h"

#include <string>

#include "collage/op/rules.h"

namespace collage {
namespace {

Status CheckUnits(const Attributes& attributes, int64_t columns) {
  const int64_t units = IntAttribute(attributes, "units", columns);
  if (units == columns) return {};
  return Fail("attribute 'units' is " + std::to_string(units) + ", expected " + std::to_string(columns) + " columns of the result");
}

Result<MatrixProduct> ReadProduct(const TensorType& a, const TensorType& b, bool transpose_a, bool transpose_b) {
  const size_t last_a = a.shape.size() - 1;
  const size_t last_b = b.shape.size() - 1;
  MatrixProduct product{
      {}, Shape(a.shape.begin(), a.shape.end() - 2), Shape(b.shape.begin(), b.shape.end() - 2), 0, 0, 0, transpose_a, transpose_b};
  product.batch = COLLAGE_TRY(BroadcastShapes(product.batch_a, product.batch_b));
  product.rows = a.shape[transpose_a ? last_a : last_a - 1];
  product.depth = a.shape[transpose_a ? last_a - 1 : last_a];
  product.columns = b.shape[transpose_b ? last_b - 1 : last_b];
  const int64_t depth = b.shape[transpose_b ? last_b : last_b - 1];
  if (depth != product.depth) {
    return Fail("b has shape " + ToString(b.shape) + (transpose_b ? " (transposed)" : "") + ", expected " + std::to_string(product.depth) +
                (transpose_b ? " columns" : " rows") + " to fit a of shape " + ToString(a.shape) + (transpose_a ? " (transposed)" : ""));
  }
  return product;
}

}  // namespace

Result<MatrixProduct> ReadDense(const TensorType& data, const TensorType& weight, const Attributes& attributes) {
  COLLAGE_TRY_STATUS(ExpectRankAtLeast(data, "data", 1));
  COLLAGE_TRY_STATUS(ExpectRank(weight, "weight", 2));
  if (weight.shape[1] != data.shape.back()) {
    return Fail("weight has shape " + ToString(weight.shape) + ", expected " + std::to_string(data.shape.back()) +
                " columns as data of shape " + ToString(data.shape) + " has");
  }
  COLLAGE_TRY_STATUS(CheckUnits(attributes, weight.shape[0]));
  const Shape leading(data.shape.begin(), data.shape.end() - 1);
  return MatrixProduct{{}, {}, {}, ElementCount(leading), weight.shape[0], weight.shape[1], false, true};
}

Result<MatrixProduct> ReadMatmul(const TensorType& a, const TensorType& b, const Attributes& attributes) {
  COLLAGE_TRY_STATUS(ExpectRankAtLeast(a, "a", 2));
  COLLAGE_TRY_STATUS(ExpectRankAtLeast(b, "b", 2));
  MatrixProduct product =
      COLLAGE_TRY(ReadProduct(a, b, BoolAttribute(attributes, "transpose_a", false), BoolAttribute(attributes, "transpose_b", false)));
  COLLAGE_TRY_STATUS(CheckUnits(attributes, product.columns));
  return product;
}

Result<MatrixProduct> ReadBatchMatmul(const TensorType& a, const TensorType& b, const Attributes& attributes) {
  COLLAGE_TRY_STATUS(ExpectRank(a, "a", 3));
  COLLAGE_TRY_STATUS(ExpectRank(b, "b", 3));
  return ReadProduct(a, b, BoolAttribute(attributes, "transpose_a", false), BoolAttribute(attributes, "transpose_b", true));
}

MatrixProduct WithJoinedRows(MatrixProduct product) {
  if (product.transpose_a || ElementCount(product.batch_b) != 1 || ElementCount(product.batch_a) != ElementCount(product.batch))
    return product;
  product.rows *= ElementCount(product.batch);
  product.batch.clear();
  return product;
}

}  // namespace collage
