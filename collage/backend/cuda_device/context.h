#pragma once

#include <cuda.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collage/backend/backend.h"
#include "collage/backend/cuda_device/transpose.h"
#include "collage/runtime/device_context.h"

namespace collage::cuda {

/// What kernels are generated and chosen for.
struct Capabilities {
  int major = 0;  ///< of the compute capability
  int minor = 0;
  size_t l2_bytes = 0;
};

/// A GPU in use: its primary context, which the libraries of CUDA share, and one stream. Allocations come from the driver's own pool, which
/// keeps what is freed.
class CudaContext final : public DeviceContext {
 public:
  static Result<std::shared_ptr<CudaContext>> Create(const Device& device, CUdevice id, std::string name);
  ~CudaContext() override;

  Status CopyIn(void* to, const void* from_host, size_t bytes) override;
  Status CopyOut(void* to_host, const void* from, size_t bytes) override;
  Status CopyWithin(void* to, const void* from, size_t bytes) override;
  [[nodiscard]] bool CanTranspose(const Transposition& transposition) const override {
    return transpose_.IsLoaded() && HasTransposeKernel(transposition);
  }
  Status Transpose(const Transposition& transposition, void* to, const void* from) override;
  uint64_t Record() override;
  Status Wait(uint64_t place) override;
  /// As a graph, launched whole.
  Result<std::unique_ptr<RecordedWork>> RecordWork(std::vector<std::function<Status()>> parts) override;
  Result<bool> EmptyCaches() override;

  /// Where this thread gives its work: the device's stream, or one that is being recorded. For kernels, in Run; and the context is this
  /// thread's current one then.
  [[nodiscard]] CUstream stream() const;
  /// Makes it this thread's current context, as every function of CUDA wants it.
  [[nodiscard]] Status Enter() const;
  /// What is given meanwhile to this thread's stream, as a graph. Errors are those of `give` and of the driver.
  Result<CUgraphExec> RecordGraph(const std::function<Status()>& give);
  [[nodiscard]] const Capabilities& capabilities() const { return capabilities_; }

 protected:
  Result<void*> DoAllocate(size_t bytes) override;
  void DoFree(void* address) override;

 private:
  CudaContext(const Device& device, std::string name, size_t memory, CUdevice id)
      : DeviceContext(device, std::move(name), memory), id_(id) {}
  Status Start();
  Result<CUevent> RecordEvent();

  struct Mark {
    uint64_t place;
    CUevent event;
  };
  CUdevice id_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  Capabilities capabilities_;
  TransposeKernels transpose_;
  std::mutex marks_mutex_;
  std::deque<Mark> marks_;
  uint64_t last_place_ = 0;
  std::mutex eviction_mutex_;
  CUdeviceptr eviction_ = 0;  ///< memory that is written to empty the second cache; made when first wanted
};

/// A device that the driver has, or why it cannot be used.
struct DeviceEntry {
  Device device;
  CUdevice id;
  std::string name;
  std::string version;  ///< the newest CUDA that the driver serves, and what the device is: see ProbeDevice
  std::string reason;   ///< empty: it can be used
};
/// All devices of the driver. They are looked for once.
const std::vector<DeviceEntry>& AllDevices();
/// Those of a backend that runs on all of them.
std::vector<FoundDevice> FoundDevices();
/// "13.0 on NVIDIA H100 (compute capability 9.0, 79 GiB)", the driver's version and what the device is; or why it cannot be used.
Presence ProbeDevice(const Device& device);
/// The context that all backends of this device share.
Result<std::shared_ptr<CudaContext>> ContextOf(const Device& device);

/// Memory of the device with the bytes of a constant.
Result<DeviceMemory> BringConstant(const std::shared_ptr<CudaContext>& context, const Tensor& constant);

}  // namespace collage::cuda
