#include "collage/op/families.h"
#include "collage/op/kernels.h"
#include "collage/op/matrix_product.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

using Reader = Result<MatrixProduct> (*)(const TensorType&, const TensorType&, const Attributes&);

OpDef::TypeRule ProductType(Reader read, const char* a_name, const char* b_name) {
  return [=](TypeArguments arguments, const Attributes& attributes) -> Result<Type> {
    const TensorType a = COLLAGE_TRY(TensorArgument(arguments, 0, a_name));
    const TensorType b = COLLAGE_TRY(TensorArgument(arguments, 1, b_name));
    COLLAGE_TRY_STATUS(ExpectNumber(a, a_name));
    COLLAGE_TRY_STATUS(ExpectSameDType(b, b_name, a, a_name));
    COLLAGE_TRY_STATUS(ExpectOutDType(attributes, a));
    const MatrixProduct product = COLLAGE_TRY(read(a, b, attributes));
    Shape shape = product.batch;
    shape.push_back(product.rows);
    shape.push_back(product.columns);
    return Type(TensorType{std::move(shape), a.dtype});
  };
}

Result<Type> DenseType(TypeArguments arguments, const Attributes& attributes) {
  COLLAGE_TRY(ProductType(ReadDense, "data", "weight")(arguments, attributes));
  TensorType result = *arguments[0].AsTensor();
  result.shape.back() = arguments[1].AsTensor()->shape[0];
  return Type(std::move(result));
}

OpDef::WorkRule ProductWork(Reader read) {
  return [read](TypeArguments arguments, const Type& result, const Attributes& attributes) {
    const Result<MatrixProduct> product = read(*arguments[0].AsTensor(), *arguments[1].AsTensor(), attributes);
    return Work{2.0 * ElementCount(result) * static_cast<double>(product->depth),
                ByteCount(arguments[0]) + ByteCount(arguments[1]) + ByteCount(result)};
  };
}

const AttributeSpec kUnits{"units", "int", "number of columns of the result; when given it must agree with the arguments"};
const AttributeSpec kOutDType{"out_dtype", "string", "only the dtype of the first argument, or \"\""};

}  // namespace

void AddMatmulOperators(OpTable& table) {
  Register(table, {.name = "nn.dense",
                   .summary = "Fully connected layer: data[.., k] times the transpose of weight[n, k]; integers wrap around.",
                   .argument_names = {"data", "weight"},
                   .attributes = {kUnits, kOutDType},
                   .kind = OpKind::kOutElementwiseFusable,
                   .infer_type = DenseType,
                   .work = ProductWork(ReadDense),
                   .reference = ReferenceDense});
  Register(table, {.name = "nn.matmul",
                   .summary = "Matrix product of the last two dimensions; leading ones broadcast as in NumPy; integers wrap around.",
                   .argument_names = {"a", "b"},
                   .attributes = {{"transpose_a", "bool", "a is stored [.., k, m], default False"},
                                  {"transpose_b", "bool", "b is stored [.., n, k], default False"},
                                  kUnits,
                                  kOutDType},
                   .kind = OpKind::kOutElementwiseFusable,
                   .infer_type = ProductType(ReadMatmul, "a", "b"),
                   .work = ProductWork(ReadMatmul),
                   .reference = ReferenceMatmul});
  Register(table, {.name = "nn.batch_matmul",
                   .summary = "Matrix products of a batch: a[b, m, k] times the transpose of b[b, n, k]; a batch of 1 broadcasts.",
                   .argument_names = {"a", "b"},
                   .attributes = {{"transpose_a", "bool", "a is stored [b, k, m], default False"},
                                  {"transpose_b", "bool", "b is stored [b, n, k], default True"},
                                  kOutDType},
                   .kind = OpKind::kOutElementwiseFusable,
                   .infer_type = ProductType(ReadBatchMatmul, "a", "b"),
                   .work = ProductWork(ReadBatchMatmul),
                   .reference = ReferenceBatchMatmul});
}

}  // namespace collage
