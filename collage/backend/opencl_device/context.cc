#include "collage/backend/opencl_device/context.h"

#include <algorithm>
#include <map>
#include <utility>

#include "collage/support/memory.h"

namespace collage::opencl {
namespace {

constexpr cl_image_format kTexel = {CL_R, CL_FLOAT};

template <class Number>
Number NumberOf(cl_device_id id, cl_device_info what) {
  Number number = 0;
  clGetDeviceInfo(id, what, sizeof number, &number, nullptr);
  return number;
}

/// `get` is clGetDeviceInfo or clGetPlatformInfo.
template <class Get, class Object>
std::string TextOf(Get get, Object object, cl_uint what) {
  size_t bytes = 0;
  if (get(object, what, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return {};
  std::string text(bytes, '\0');
  get(object, what, bytes, text.data(), nullptr);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

std::string TextOf(cl_device_id id, cl_device_info what) { return TextOf(clGetDeviceInfo, id, what); }

std::string WhyNot(cl_device_id id) {
  if (!NumberOf<cl_bool>(id, CL_DEVICE_AVAILABLE)) return "the driver says that it is not available";
  if (!NumberOf<cl_bool>(id, CL_DEVICE_COMPILER_AVAILABLE)) return "its driver has no compiler";
  const auto memory = NumberOf<cl_device_svm_capabilities>(id, CL_DEVICE_SVM_CAPABILITIES);
  if ((memory & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) == 0) return "it has no shared virtual memory, so no addresses";
  return {};
}

std::vector<DeviceEntry> FindDevices() {
  std::vector<DeviceEntry> entries;
  cl_uint platform_count = 0;
  if (clGetPlatformIDs(0, nullptr, &platform_count) != CL_SUCCESS) return entries;
  std::vector<cl_platform_id> platforms(platform_count);
  clGetPlatformIDs(platform_count, platforms.data(), nullptr);
  for (cl_platform_id platform : platforms) {
    cl_uint count = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) continue;
    std::vector<cl_device_id> ids(count);
    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr);
    for (cl_device_id id : ids) {
      entries.push_back({{DeviceKind::kOpenCl, static_cast<int>(entries.size()), 1},
                         id,
                         TextOf(id, CL_DEVICE_NAME),
                         TextOf(id, CL_DRIVER_VERSION),
                         WhyNot(id)});
    }
  }
  return entries;
}

}  // namespace

tl::unexpected<Error> FailOf(const char* call, cl_int error) {
  return Fail("opencl: " + std::string(call) + ": error " + std::to_string(error));
}

Result<std::shared_ptr<OpenClContext>> OpenClContext::Create(const Device& device, cl_device_id id) {
  const auto memory = static_cast<size_t>(NumberOf<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE));
  std::shared_ptr<OpenClContext> context(new OpenClContext(device, TextOf(id, CL_DEVICE_NAME), memory, id));
  cl_int error = CL_SUCCESS;
  context->context_ = clCreateContext(nullptr, 1, &id, nullptr, nullptr, &error);
  if (error != CL_SUCCESS) return FailOf("clCreateContext", error);
  context->queue_ = clCreateCommandQueueWithProperties(context->context_, id, nullptr, &error);
  if (error != CL_SUCCESS) return FailOf("clCreateCommandQueueWithProperties", error);
  context->texture_rows_ = context->FindTextureRows();
  return context;
}

OpenClContext::~OpenClContext() {
  if (queue_) clFinish(queue_);
  for (const Mark& mark : marks_) {
    if (mark.event) clReleaseEvent(mark.event);
  }
  if (queue_) clReleaseCommandQueue(queue_);
  if (context_) clReleaseContext(context_);
}

std::string OpenClContext::Identity() const {
  return TextOf(id_, CL_DEVICE_NAME) + " (" + TextOf(id_, CL_DEVICE_VERSION) + "), driver " + TextOf(id_, CL_DRIVER_VERSION);
}

std::string OpenClContext::Platform() const {
  cl_platform_id platform = nullptr;
  clGetDeviceInfo(id_, CL_DEVICE_PLATFORM, sizeof(cl_platform_id), &platform, nullptr);
  return TextOf(clGetPlatformInfo, platform, CL_PLATFORM_NAME);
}

Status OpenClContext::Copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return {};
  const cl_int error = clEnqueueSVMMemcpy(queue_, CL_FALSE, to, from, bytes, 0, nullptr, nullptr);
  return error == CL_SUCCESS ? Status() : FailOf("clEnqueueSVMMemcpy", error);
}

uint64_t OpenClContext::Record() {
  const std::lock_guard<std::mutex> lock(marks_mutex_);
  cl_event event = nullptr;
  if (clEnqueueMarkerWithWaitList(queue_, 0, nullptr, &event) != CL_SUCCESS) event = nullptr;
  clFlush(queue_);
  marks_.push_back({++last_place_, event});
  return last_place_;
}

Status OpenClContext::Wait(uint64_t place) {
  std::vector<Mark> reached;
  {
    const std::lock_guard<std::mutex> lock(marks_mutex_);
    for (; !marks_.empty() && marks_.front().place <= place; marks_.pop_front()) reached.push_back(marks_.front());
  }
  // Another thread may have taken the marks and still wait.
  if (reached.empty()) return clFinish(queue_) == CL_SUCCESS ? Status() : FailOf("clFinish", CL_INVALID_COMMAND_QUEUE);
  cl_int error = reached.back().event ? clWaitForEvents(1, &reached.back().event) : clFinish(queue_);
  for (const Mark& mark : reached) {
    if (mark.event) clReleaseEvent(mark.event);
  }
  return error == CL_SUCCESS ? Status() : FailOf("clWaitForEvents", error);
}

Result<void*> OpenClContext::DoAllocate(size_t bytes) {
  void* address = clSVMAlloc(context_, CL_MEM_READ_WRITE, bytes, kBufferAlignment);
  if (!address) return Fail("opencl: clSVMAlloc gives no " + std::to_string(bytes) + " bytes on " + ToString(device()));
  const std::lock_guard<std::mutex> lock(allocations_mutex_);
  allocations_[static_cast<const std::byte*>(address)] = {bytes, nullptr};
  return address;
}

void OpenClContext::DoFree(void* address) {
  {
    const std::lock_guard<std::mutex> lock(allocations_mutex_);
    const auto allocation = allocations_.find(static_cast<const std::byte*>(address));
    if (allocation->second.buffer) clReleaseMemObject(allocation->second.buffer);
    allocations_.erase(allocation);
  }
  clSVMFree(context_, address);
}

size_t OpenClContext::FindTextureRows() const {
  if (!NumberOf<cl_bool>(id_, CL_DEVICE_IMAGE_SUPPORT)) return 0;
  if (NumberOf<size_t>(id_, CL_DEVICE_IMAGE2D_MAX_WIDTH) < DeviceTexture::kRowElements) return 0;
  cl_uint count = 0;
  if (clGetSupportedImageFormats(context_, CL_MEM_READ_ONLY, CL_MEM_OBJECT_IMAGE2D, 0, nullptr, &count) != CL_SUCCESS) return 0;
  std::vector<cl_image_format> formats(count);
  clGetSupportedImageFormats(context_, CL_MEM_READ_ONLY, CL_MEM_OBJECT_IMAGE2D, count, formats.data(), nullptr);
  const bool has_floats = std::any_of(formats.begin(), formats.end(), [](const cl_image_format& format) {
    return format.image_channel_order == kTexel.image_channel_order && format.image_channel_data_type == kTexel.image_channel_data_type;
  });
  return has_floats ? NumberOf<size_t>(id_, CL_DEVICE_IMAGE2D_MAX_HEIGHT) : 0;
}

bool OpenClContext::TakesTexture(size_t elements) const { return elements <= texture_rows_ * DeviceTexture::kRowElements && elements > 0; }

Result<DeviceTexture> DeviceTexture::Create(std::shared_ptr<OpenClContext> context, const float* data, size_t elements) {
  const size_t width = std::min(elements, kRowElements);
  const size_t rows = (elements + width - 1) / width;
  std::vector<float> texels(rows * width);
  std::copy_n(data, elements, texels.begin());
  const size_t bytes = texels.size() * sizeof(float);
  COLLAGE_TRY_STATUS(context->Take(bytes));
  cl_image_desc description = {};
  description.image_type = CL_MEM_OBJECT_IMAGE2D;
  description.image_width = width;
  description.image_height = rows;
  cl_int error = CL_SUCCESS;
  cl_mem image = clCreateImage(context->context(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, &kTexel, &description, texels.data(), &error);
  if (error == CL_SUCCESS) return DeviceTexture(std::move(context), image, bytes);
  context->GiveBack(bytes);
  return FailOf("clCreateImage", error);
}

DeviceTexture::DeviceTexture(DeviceTexture&& other) noexcept
    : context_(std::move(other.context_)), image_(std::exchange(other.image_, nullptr)), bytes_(other.bytes_) {}

DeviceTexture::~DeviceTexture() {
  if (!image_) return;
  clReleaseMemObject(image_);  // when no kernel that was given reads it any more
  context_->GiveBack(bytes_);
}

Result<BufferPlace> OpenClContext::BufferAt(const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  const std::lock_guard<std::mutex> lock(allocations_mutex_);
  auto found = allocations_.upper_bound(at);
  if (found == allocations_.begin()) return Fail("opencl: an address that is not the device's");
  auto& [begin, allocation] = *--found;
  const auto offset = static_cast<size_t>(at - begin);
  if (offset >= allocation.bytes) return Fail("opencl: an address that is not the device's");
  if (!allocation.buffer) {
    cl_int error = CL_SUCCESS;
    allocation.buffer =
        clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, allocation.bytes, const_cast<std::byte*>(begin), &error);
    if (error != CL_SUCCESS) return FailOf("clCreateBuffer", error);
  }
  return BufferPlace{allocation.buffer, offset};
}

const std::vector<DeviceEntry>& AllDevices() {
  static const std::vector<DeviceEntry> entries = FindDevices();
  return entries;
}

std::vector<FoundDevice> FoundDevices() {
  std::vector<FoundDevice> found;
  for (const DeviceEntry& entry : AllDevices()) found.push_back({entry.device, entry.name});
  return found;
}

Presence ProbeDevice(const Device& device) {
  // Drivers are large, so nobody opens them who does not ask for their devices.
  if (device.kind != DeviceKind::kOpenCl)
    return Presence::Absent("it runs on OpenCL devices only, which need a driver such as pocl-opencl-icd");
  for (const DeviceEntry& entry : AllDevices()) {
    if (entry.device.id != device.id) continue;
    if (!entry.reason.empty()) return Presence::Absent(entry.name + ": " + entry.reason);
    return Presence::Version(entry.version + " on " + entry.name);
  }
  return Presence::Absent("the OpenCL loader finds no such device");
}

Result<std::shared_ptr<OpenClContext>> ContextOf(const Device& device) {
  static std::mutex mutex;
  static std::map<int, std::shared_ptr<OpenClContext>> contexts;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto known = contexts.find(device.id);
  if (known != contexts.end()) return known->second;
  for (const DeviceEntry& entry : AllDevices()) {
    if (entry.device.id != device.id || device.kind != DeviceKind::kOpenCl) continue;
    if (!entry.reason.empty()) return Fail("opencl: " + ToString(entry.device) + " (" + entry.name + "): " + entry.reason);
    return contexts[device.id] = COLLAGE_TRY(OpenClContext::Create(entry.device, entry.id));
  }
  return Fail("opencl: there is no device " + ToString(device));
}

}  // namespace collage::opencl
