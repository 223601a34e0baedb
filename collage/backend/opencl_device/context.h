#pragma once

#include <CL/cl.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collage/backend/backend.h"
#include "collage/runtime/device_context.h"

namespace collage::opencl {

/// "clBuildProgram: error -11".
tl::unexpected<Error> FailOf(const char* call, cl_int error);

/// Memory as libraries take it that know buffers and no addresses.
struct BufferPlace {
  cl_mem buffer = nullptr;
  size_t offset = 0;  ///< bytes
};

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
  /// The device and its driver in words: code that a driver gives is for these alone.
  [[nodiscard]] std::string Identity() const;
  /// The name of the OpenCL implementation.
  [[nodiscard]] std::string Platform() const;
  /// Whether a texture may have so many elements; false for all where the device has none.
  [[nodiscard]] bool TakesTexture(size_t elements) const;
  /// The same memory as an address of an allocation, which owns the buffer. Errors on other addresses.
  Result<BufferPlace> BufferAt(const void* address);

 protected:
  Result<void*> DoAllocate(size_t bytes) override;
  void DoFree(void* address) override;

 private:
  friend class DeviceTexture;
  OpenClContext(const Device& device, std::string name, size_t memory, cl_device_id id)
      : DeviceContext(device, std::move(name), memory), id_(id) {}
  Status Copy(void* to, const void* from, size_t bytes);
  /// How many rows a texture may have; 0: there are none of floats.
  [[nodiscard]] size_t FindTextureRows() const;

  struct Mark {
    uint64_t place;
    cl_event event;  ///< null where the queue did not take the marker
  };
  cl_device_id id_;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  size_t texture_rows_ = 0;
  std::mutex marks_mutex_;
  std::deque<Mark> marks_;
  uint64_t last_place_ = 0;
  struct Allocation {
    size_t bytes;
    cl_mem buffer;  ///< made when it is first asked for
  };
  std::mutex allocations_mutex_;
  std::map<const std::byte*, Allocation> allocations_;
};

/// Floats that kernels only read, as an image: a read goes through the cache and the units that a device has for textures. Element i is the
/// texel (i % kRowElements, i / kRowElements), in its first channel.
class DeviceTexture {
 public:
  /// A power of two, so that no kernel divides, and a quarter of what the standard demands of an image's sides (16384, full profile): as
  /// many rows as that hold 64 million floats.
  static constexpr size_t kRowElements = 4096;

  /// `elements` must be so many that the context takes them.
  static Result<DeviceTexture> Create(std::shared_ptr<OpenClContext> context, const float* data, size_t elements);
  DeviceTexture(DeviceTexture&& other) noexcept;
  DeviceTexture& operator=(DeviceTexture&&) = delete;
  ~DeviceTexture();

  [[nodiscard]] cl_mem image() const { return image_; }

 private:
  DeviceTexture(std::shared_ptr<OpenClContext> context, cl_mem image, size_t bytes)
      : context_(std::move(context)), image_(image), bytes_(bytes) {}

  std::shared_ptr<OpenClContext> context_;
  cl_mem image_;
  size_t bytes_;
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
/// Those of a backend that runs on all of them.
std::vector<FoundDevice> FoundDevices();
/// "3.1 on pthread-cascadelake", the driver's version and the device's name; or why it cannot be used.
Presence ProbeDevice(const Device& device);
/// The context that all backends of this device share.
Result<std::shared_ptr<OpenClContext>> ContextOf(const Device& device);

}  // namespace collage::opencl
