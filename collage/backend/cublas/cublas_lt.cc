#include "collage/backend/cublas/cublas_lt.h"

#include <map>
#include <mutex>

#include "collage/backend/cuda_device/library.h"
#include "collage/support/check.h"

namespace collage::cublas {
namespace {

Result<CublasLt> OpenLibrary() {
  const cuda::Library library = COLLAGE_TRY(cuda::Library::OpenOfToolkit("cublasLt"));
  CublasLt table;
#define COLLAGE_CUBLAS_FIND(function) COLLAGE_CUDA_FIND(library, table, function);
  COLLAGE_CUBLAS_FUNCTIONS(COLLAGE_CUBLAS_FIND)
#undef COLLAGE_CUBLAS_FIND
  return table;
}

}  // namespace

const Result<CublasLt>& CublasLt::Get() {
  static const Result<CublasLt> library = OpenLibrary();
  return library;
}

const CublasLt& CublasLt::Use() {
  COLLAGE_CHECK(Get().has_value());
  return *Get();
}

std::string CublasLt::Version() const { return cuda::VersionText(cublasLtGetVersion()); }

tl::unexpected<Error> FailOf(const char* call, cublasStatus_t status) {
  return Fail("cublas: " + std::string(call) + ": " + CublasLt::Use().cublasLtGetStatusName(status));
}

Result<Session> Session::Of(const Device& device) {
  const std::shared_ptr<cuda::CudaContext> context = COLLAGE_TRY(cuda::ContextOf(device));
  if (!CublasLt::Get()) return Fail("cublas: " + CublasLt::Get().error().message);
  COLLAGE_TRY_STATUS(context->Enter());
  // They are made behind what they use, so that they go before it when the process ends.
  static std::mutex mutex;
  static std::map<int, Session> sessions;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto known = sessions.find(device.id);
  if (known != sessions.end()) return known->second;
  cublasLtHandle_t handle = nullptr;
  COLLAGE_CUBLAS_CALL(cublasLtCreate, &handle);
  return sessions.emplace(device.id, Session{context, handle}).first->second;
}

}  // namespace collage::cublas
