#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>

#include "collage/backend/cuda_device/context.h"
#include "collage/support/result.h"

namespace collage::cublas {

/// The functions of cuBLASLt that are used here. The library is opened when Collage runs.
struct CublasLt {
#define COLLAGE_CUBLAS_FUNCTIONS(APPLY)       \
  APPLY(cublasLtCreate)                       \
  APPLY(cublasLtGetVersion)                   \
  APPLY(cublasLtGetStatusName)                \
  APPLY(cublasLtMatrixLayoutCreate)           \
  APPLY(cublasLtMatrixLayoutDestroy)          \
  APPLY(cublasLtMatrixLayoutSetAttribute)     \
  APPLY(cublasLtMatmulDescCreate)             \
  APPLY(cublasLtMatmulDescDestroy)            \
  APPLY(cublasLtMatmulDescSetAttribute)       \
  APPLY(cublasLtMatmulPreferenceCreate)       \
  APPLY(cublasLtMatmulPreferenceDestroy)      \
  APPLY(cublasLtMatmulPreferenceSetAttribute) \
  APPLY(cublasLtMatmulAlgoGetHeuristic)       \
  APPLY(cublasLtMatmulAlgoCheck)              \
  APPLY(cublasLtMatmul)
#define COLLAGE_CUBLAS_MEMBER(function) decltype(&::function) function = nullptr;  // NOLINT(bugprone-macro-parentheses)
  COLLAGE_CUBLAS_FUNCTIONS(COLLAGE_CUBLAS_MEMBER)
#undef COLLAGE_CUBLAS_MEMBER

  /// Opened once. Errors are the loader's.
  static const Result<CublasLt>& Get();
  /// `Get`'s, which there must be.
  static const CublasLt& Use();
  /// "13.1.0".
  [[nodiscard]] std::string Version() const;
};

/// "cublas: cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED".
tl::unexpected<Error> FailOf(const char* call, cublasStatus_t status);

/// The library in use on a device. Any thread may use it.
struct Session {
  std::shared_ptr<cuda::CudaContext> context;
  cublasLtHandle_t handle;  ///< kept to the end of the process, when the library may be gone before whoever would destroy it

  /// The one of this device, made when first asked for. Its context is the calling thread's current one afterwards. Errors say what is
  /// missing, or are the library's.
  static Result<Session> Of(const Device& device);
};

}  // namespace collage::cublas

/// Calls a function of the library; an error leaves the enclosing function.
#define COLLAGE_CUBLAS_CALL(function, ...)                                                                                  \
  do {                                                                                                                      \
    const cublasStatus_t collage_cublas_status = ::collage::cublas::CublasLt::Use().function(__VA_ARGS__);                  \
    if (collage_cublas_status != CUBLAS_STATUS_SUCCESS) return ::collage::cublas::FailOf(#function, collage_cublas_status); \
  } while (false)
