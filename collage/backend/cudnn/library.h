#pragma once

#include <cudnn_graph.h>

#include <memory>
#include <mutex>
#include <string>

#include "collage/backend/cuda_device/context.h"
#include "collage/support/result.h"

namespace collage::cudnn {

/// The functions of cuDNN that are used here: those of its graphs of operations. The library is opened when Collage runs.
struct Library {
#define COLLAGE_CUDNN_FUNCTIONS(APPLY) \
  APPLY(cudnnGetVersion)               \
  APPLY(cudnnGetErrorString)           \
  APPLY(cudnnGetLastErrorString)       \
  APPLY(cudnnCreate)                   \
  APPLY(cudnnDestroy)                  \
  APPLY(cudnnSetStream)                \
  APPLY(cudnnBackendCreateDescriptor)  \
  APPLY(cudnnBackendDestroyDescriptor) \
  APPLY(cudnnBackendSetAttribute)      \
  APPLY(cudnnBackendGetAttribute)      \
  APPLY(cudnnBackendFinalize)          \
  APPLY(cudnnBackendExecute)
#define COLLAGE_CUDNN_MEMBER(function) decltype(&::function) function = nullptr;  // NOLINT(bugprone-macro-parentheses)
  COLLAGE_CUDNN_FUNCTIONS(COLLAGE_CUDNN_MEMBER)
#undef COLLAGE_CUDNN_MEMBER

  /// Opened once. Errors are the loader's.
  static const Result<Library>& Get();
  /// `Get`'s, which there must be.
  static const Library& Use();
  /// "9.19.0".
  [[nodiscard]] std::string Version() const;
};

/// "cudnn: cudnnBackendFinalize: CUDNN_STATUS_NOT_SUPPORTED (the library's reason)".
tl::unexpected<Error> FailOf(const char* call, cudnnStatus_t status);

/// The library in use on a device.
class Session {
 public:
  /// The one of this device; made when first asked for, and never destroyed, because at the end of the process parts of the library are
  /// gone before what was made first. The device's context is the calling thread's current one afterwards. Errors say what is missing, or
  /// are the library's.
  static Result<Session*> Of(const Device& device);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] const std::shared_ptr<cuda::CudaContext>& context() const { return context_; }
  /// For one thread at a time: whoever uses it holds `Lock`.
  [[nodiscard]] cudnnHandle_t handle() const { return handle_; }
  [[nodiscard]] std::unique_lock<std::mutex> Lock() { return std::unique_lock(mutex_); }

  /// Gives the work of a plan to the calling thread's stream. Takes the lock itself.
  Status Execute(cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t addresses);

 private:
  Session(std::shared_ptr<cuda::CudaContext> context, cudnnHandle_t handle) : context_(std::move(context)), handle_(handle) {}

  std::shared_ptr<cuda::CudaContext> context_;
  cudnnHandle_t handle_;
  std::mutex mutex_;
};

}  // namespace collage::cudnn

/// Calls a function of the library; an error leaves the enclosing function.
#define COLLAGE_CUDNN_CALL(function, ...)                                                                               \
  do {                                                                                                                  \
    const cudnnStatus_t collage_cudnn_status = ::collage::cudnn::Library::Use().function(__VA_ARGS__);                  \
    if (collage_cudnn_status != CUDNN_STATUS_SUCCESS) return ::collage::cudnn::FailOf(#function, collage_cudnn_status); \
  } while (false)
