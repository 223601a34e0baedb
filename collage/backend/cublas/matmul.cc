#include "collage/backend/cublas/matmul.h"

#include <algorithm>
#include <array>
#include <utility>

#include "collage/support/memory.h"

namespace collage::cublas {
namespace {

// Each is a kernel that a compile has to time. On an H100 a BERT encoder's 40 products take 16 times the first, and 8 times each of the
// other three.
constexpr int kMostAlgorithms = 4;
// What cuBLAS recommends for GPUs since Hopper, 32 MiB; those before need 4, and with less the library takes what fits.
constexpr uint64_t kMostWorkspaceBytes = uint64_t{32} << 20;

cudaDataType ElementTypeOf(DType dtype) { return dtype == DType::kFloat16 ? CUDA_R_16F : CUDA_R_32F; }

uint32_t EpilogueOf(const Layer& layer) {
  switch (layer.activation) {
    case Activation::kRelu:
      return layer.bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case Activation::kGeluByTanh:
      return layer.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case Activation::kNone:
      break;
  }
  return layer.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

template <class Value>
Status Set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  COLLAGE_CUBLAS_CALL(cublasLtMatmulDescSetAttribute, operation, attribute, &value, sizeof value);
  return {};
}

template <class Value>
Status Set(cublasLtMatrixLayout_t matrices, cublasLtMatrixLayoutAttribute_t attribute, const Value& value) {
  COLLAGE_CUBLAS_CALL(cublasLtMatrixLayoutSetAttribute, matrices, attribute, &value, sizeof value);
  return {};
}

template <class Value>
Status Set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
  COLLAGE_CUBLAS_CALL(cublasLtMatmulPreferenceSetAttribute, preference, attribute, &value, sizeof value);
  return {};
}

int32_t TransformOf(const Layer::Operand& operand) { return operand.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; }

}  // namespace

void Matmul::Destroy::operator()(cublasLtMatmulDescOpaque_t* description) const {
  (void)CublasLt::Use().cublasLtMatmulDescDestroy(description);
}

void Matmul::Destroy::operator()(cublasLtMatrixLayoutOpaque_t* description) const {
  (void)CublasLt::Use().cublasLtMatrixLayoutDestroy(description);
}

void Matmul::Destroy::operator()(cublasLtMatmulPreferenceOpaque_t* description) const {
  (void)CublasLt::Use().cublasLtMatmulPreferenceDestroy(description);
}

Result<Matmul> Matmul::Describe(const Layer& layer, const void* bias) {
  Matmul made;
  made.operation_ = COLLAGE_TRY(DescribeOperation(layer, bias));
  made.a_ = COLLAGE_TRY(DescribeOperand(layer, layer.a, layer.rows, layer.depth));
  made.b_ = COLLAGE_TRY(DescribeOperand(layer, layer.b, layer.depth, layer.columns));
  made.result_ = COLLAGE_TRY(DescribeMatrices(layer, layer.rows, layer.columns, layer.rows * layer.columns));
  made.factor_ = static_cast<float>(layer.factor);
  made.kept_ = layer.added ? 1.0F : 0.0F;
  return made;
}

Result<Matmul::Operation> Matmul::DescribeOperation(const Layer& layer, const void* bias) {
  cublasLtMatmulDesc_t description = nullptr;
  const cublasComputeType_t computed = layer.in_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  COLLAGE_CUBLAS_CALL(cublasLtMatmulDescCreate, &description, computed, CUDA_R_32F);
  Operation operation(description);
  COLLAGE_TRY_STATUS(Set(description, CUBLASLT_MATMUL_DESC_TRANSA, TransformOf(layer.b)));
  COLLAGE_TRY_STATUS(Set(description, CUBLASLT_MATMUL_DESC_TRANSB, TransformOf(layer.a)));
  COLLAGE_TRY_STATUS(Set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(layer)));
  if (layer.bias) COLLAGE_TRY_STATUS(Set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
  return operation;
}

/// `rows` and `columns` as stored, `step` in elements from batch to batch.
Result<Matmul::Matrices> Matmul::DescribeMatrices(const Layer& layer, int64_t rows, int64_t columns, int64_t step) {
  cublasLtMatrixLayout_t description = nullptr;
  COLLAGE_CUBLAS_CALL(cublasLtMatrixLayoutCreate, &description, ElementTypeOf(layer.dtype), static_cast<uint64_t>(columns),
                      static_cast<uint64_t>(rows), columns);
  Matrices matrices(description);
  if (layer.batches == 1) return matrices;
  COLLAGE_TRY_STATUS(Set(description, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(layer.batches)));
  COLLAGE_TRY_STATUS(Set(description, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, step));
  return matrices;
}

/// `rows` and `columns` as multiplied.
Result<Matmul::Matrices> Matmul::DescribeOperand(const Layer& layer, const Layer::Operand& operand, int64_t rows, int64_t columns) {
  if (operand.transposed) std::swap(rows, columns);
  return DescribeMatrices(layer, rows, columns, operand.step);
}

Result<Matmul::Preference> Matmul::MakePreference() {
  cublasLtMatmulPreference_t description = nullptr;
  COLLAGE_CUBLAS_CALL(cublasLtMatmulPreferenceCreate, &description);
  Preference preference(description);
  COLLAGE_TRY_STATUS(Set(description, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspaceBytes));
  for (const cublasLtMatmulPreferenceAttributes_t alignment :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    COLLAGE_TRY_STATUS(Set(description, alignment, static_cast<uint32_t>(kBufferAlignment)));
  return preference;
}

Result<std::vector<Algorithm>> Matmul::Algorithms(const Session& session) const {
  const Preference preference = COLLAGE_TRY(MakePreference());
  std::array<cublasLtMatmulHeuristicResult_t, kMostAlgorithms> found{};
  int count = 0;
  const cublasStatus_t status =
      CublasLt::Use().cublasLtMatmulAlgoGetHeuristic(session.handle, operation_.get(), b_.get(), a_.get(), result_.get(), result_.get(),
                                                     preference.get(), kMostAlgorithms, found.data(), &count);
  std::vector<Algorithm> algorithms;
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return algorithms;
  if (status != CUBLAS_STATUS_SUCCESS) return FailOf("cublasLtMatmulAlgoGetHeuristic", status);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    if (found[i].state == CUBLAS_STATUS_SUCCESS) algorithms.push_back({found[i].algo, found[i].workspaceSize});
  }
  return algorithms;
}

Result<size_t> Matmul::Check(const Session& session, const Algorithm& algorithm) const {
  cublasLtMatmulHeuristicResult_t checked{};
  COLLAGE_CUBLAS_CALL(cublasLtMatmulAlgoCheck, session.handle, operation_.get(), b_.get(), a_.get(), result_.get(), result_.get(),
                      &algorithm.configuration, &checked);
  return std::max(algorithm.workspace_bytes, checked.workspaceSize);
}

Status Matmul::Run(const Session& session, const Algorithm& algorithm, const Addresses& at) const {
  // What is not added is not read, but its address has to be one.
  const void* added = at.added ? at.added : at.result;
  COLLAGE_CUBLAS_CALL(cublasLtMatmul, session.handle, operation_.get(), &factor_, at.b, b_.get(), at.a, a_.get(), &kept_, added,
                      result_.get(), at.result, result_.get(), &algorithm.configuration, at.workspace, algorithm.workspace_bytes,
                      session.context->stream());
  return {};
}

}  // namespace collage::cublas
