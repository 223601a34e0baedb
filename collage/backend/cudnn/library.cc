#include "collage/backend/cudnn/library.h"

#include <array>
#include <map>

#include "collage/backend/cuda_device/library.h"
#include "collage/support/check.h"

namespace collage::cudnn {
namespace {

Result<Library> OpenLibrary() {
  // The major version, which says what is compatible, is that of the header.
  const cuda::Library library = COLLAGE_TRY(cuda::Library::Open("libcudnn.so." + std::to_string(CUDNN_MAJOR)));
  Library table;
#define COLLAGE_CUDNN_FIND(function) COLLAGE_CUDA_FIND(library, table, function);
  COLLAGE_CUDNN_FUNCTIONS(COLLAGE_CUDNN_FIND)
#undef COLLAGE_CUDNN_FIND
  return table;
}

/// cuDNN opens NVRTC for each graph that it might generate code for, and closes it, which takes a third of a second. Kept open, it takes
/// nothing. Without NVRTC there are fewer engines.
void KeepCompilerOpen() { (void)cuda::Library::OpenOfToolkit("nvrtc"); }

/// Why the calling thread's last call failed, as far as the library says.
std::string LastReason() {
  constexpr size_t kLongest = 256;  // the first lines say what; the others say through which calls it came
  std::array<char, kLongest> reason{};
  Library::Use().cudnnGetLastErrorString(reason.data(), reason.size());
  reason.back() = '\0';
  return reason.data();
}

}  // namespace

const Result<Library>& Library::Get() {
  static const Result<Library> library = OpenLibrary();
  return library;
}

const Library& Library::Use() {
  COLLAGE_CHECK(Get().has_value());
  return *Get();
}

std::string Library::Version() const { return cuda::VersionText(cudnnGetVersion()); }

tl::unexpected<Error> FailOf(const char* call, cudnnStatus_t status) {
  const std::string reason = LastReason();
  return Fail("cudnn: " + std::string(call) + ": " + Library::Use().cudnnGetErrorString(status) +
              (reason.empty() ? "" : " (" + reason + ")"));
}

Result<Session*> Session::Of(const Device& device) {
  static std::mutex mutex;
  static auto& sessions = *new std::map<int, Session*>;
  const std::shared_ptr<cuda::CudaContext> context = COLLAGE_TRY(cuda::ContextOf(device));
  if (!Library::Get()) return Fail("cudnn: " + Library::Get().error().message);
  COLLAGE_TRY_STATUS(context->Enter());
  const std::lock_guard<std::mutex> lock(mutex);
  Session*& session = sessions[device.id];
  if (session) return session;
  KeepCompilerOpen();
  cudnnHandle_t handle = nullptr;
  COLLAGE_CUDNN_CALL(cudnnCreate, &handle);
  return session = new Session(context, handle);
}

Status Session::Execute(cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t addresses) {
  COLLAGE_TRY_STATUS(context_->Enter());
  const std::unique_lock<std::mutex> lock = Lock();
  COLLAGE_CUDNN_CALL(cudnnSetStream, handle_, context_->stream());
  COLLAGE_CUDNN_CALL(cudnnBackendExecute, handle_, plan, addresses);
  return {};
}

}  // namespace collage::cudnn
