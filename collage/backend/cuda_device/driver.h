#pragma once

#include <cuda.h>

#include "collage/support/result.h"

namespace collage::cuda {

/// The functions of the CUDA driver that are used here, of libcuda.so.1, which comes with the driver and not with the toolkit.
struct Driver {
#define COLLAGE_CUDA_FUNCTIONS(APPLY) \
  APPLY(cuInit)                       \
  APPLY(cuDriverGetVersion)           \
  APPLY(cuGetErrorName)               \
  APPLY(cuGetErrorString)             \
  APPLY(cuDeviceGetCount)             \
  APPLY(cuDeviceGet)                  \
  APPLY(cuDeviceGetName)              \
  APPLY(cuDeviceGetAttribute)         \
  APPLY(cuDeviceTotalMem)             \
  APPLY(cuDeviceGetDefaultMemPool)    \
  APPLY(cuMemPoolSetAttribute)        \
  APPLY(cuDevicePrimaryCtxRetain)     \
  APPLY(cuDevicePrimaryCtxRelease)    \
  APPLY(cuCtxSetCurrent)              \
  APPLY(cuStreamCreate)               \
  APPLY(cuStreamDestroy)              \
  APPLY(cuStreamSynchronize)          \
  APPLY(cuStreamBeginCapture)         \
  APPLY(cuStreamEndCapture)           \
  APPLY(cuGraphInstantiate)           \
  APPLY(cuGraphLaunch)                \
  APPLY(cuGraphDestroy)               \
  APPLY(cuGraphExecDestroy)           \
  APPLY(cuEventCreate)                \
  APPLY(cuEventDestroy)               \
  APPLY(cuEventRecord)                \
  APPLY(cuEventRecordWithFlags)       \
  APPLY(cuEventSynchronize)           \
  APPLY(cuEventElapsedTime)           \
  APPLY(cuMemAllocAsync)              \
  APPLY(cuMemFreeAsync)               \
  APPLY(cuMemsetD32Async)             \
  APPLY(cuMemcpyHtoDAsync)            \
  APPLY(cuMemcpyDtoHAsync)            \
  APPLY(cuMemcpyDtoDAsync)            \
  APPLY(cuModuleLoadData)             \
  APPLY(cuModuleUnload)               \
  APPLY(cuModuleGetFunction)          \
  APPLY(cuLaunchKernel)
#define COLLAGE_CUDA_MEMBER(function) decltype(&::function) function = nullptr;  // NOLINT(bugprone-macro-parentheses)
  COLLAGE_CUDA_FUNCTIONS(COLLAGE_CUDA_MEMBER)
#undef COLLAGE_CUDA_MEMBER

  /// Opened and initialised once. Errors say why there is none.
  static const Result<Driver>& Get();
  /// `Get`'s, which there must be.
  static const Driver& Use();
};

/// "cuMemAllocAsync: CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
tl::unexpected<Error> FailOf(const char* call, CUresult result);

}  // namespace collage::cuda

/// Calls a function of the driver; an error leaves the enclosing function.
#define COLLAGE_CUDA_CALL(function, ...)                                                                     \
  do {                                                                                                       \
    const CUresult collage_cuda_result = ::collage::cuda::Driver::Use().function(__VA_ARGS__);               \
    if (collage_cuda_result != CUDA_SUCCESS) return ::collage::cuda::FailOf(#function, collage_cuda_result); \
  } while (false)
