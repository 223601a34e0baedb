#pragma once

#include <CL/cl.h>

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collage/runtime/device_context.h"

namespace collage::opencl {

/// "clBuildProgram: error -11".
tl::unexpected<Error> FailOf(const char* call, cl_int error);

/// A device with its context and one in-order queue. Addresses are those of shared virtual memory, so that kernels take offsets as they
/// are.
class OpenClContext final : public DeviceContext {
 public:
  static Result<std::shared_ptr<OpenClContext>> Create(const Device& device, cl_device_id id);
  ~OpenClContext() override;

  Status CopyIn(void* to, const void* from_host, size_t bytes) override { return Copy(to, from_host, bytes); }
  Status CopyOut(void* to_host, const void* from, size_t bytes) override { return Copy(to_host, from, bytes); }
  Status CopyWithin(void* to, const void* from, size_t bytes) override { return Copy(to, from, bytes); }
  uint64_t Record() override;
  Status Wait(uint64_t place) override;

  [[nodiscard]] cl_context context() const { return context_; }
  [[nodiscard]] cl_command_queue queue() const { return queue_; }
  [[nodiscard]] cl_device_id id() const { return id_; }

 protected:
  Result<void*> DoAllocate(size_t bytes) override;
  void DoFree(void* address) override;

 private:
  OpenClContext(const Device& device, std::string name, size_t memory, cl_device_id id)
      : DeviceContext(device, std::move(name), memory), id_(id) {}
  Status Copy(void* to, const void* from, size_t bytes);

  struct Mark {
    uint64_t place;
    cl_event event;  ///< null where the queue did not take the marker
  };
  cl_device_id id_;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  std::mutex marks_mutex_;
  std::deque<Mark> marks_;
  uint64_t last_place_ = 0;
};

/// A device that an OpenCL driver has, or why it cannot be used.
struct DeviceEntry {
  Device device;
  cl_device_id id;
  std::string name;
  std::string version;  ///< of the driver
  std::string reason;   ///< empty: it can be used
};
/// All devices of all drivers, numbered in the loader's order. They are looked for once.
const std::vector<DeviceEntry>& AllDevices();
/// The context that all backends of this device share.
Result<std::shared_ptr<OpenClContext>> ContextOf(const Device& device);

}  // namespace collage::opencl
