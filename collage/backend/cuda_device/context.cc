#include "collage/backend/cuda_device/context.h"

#include <bit>
#include <map>
#include <utility>

#include "collage/backend/cuda_device/driver.h"
#include "collage/backend/cuda_device/work.h"
#include "collage/support/log.h"

namespace collage::cuda {
namespace {

CUdeviceptr Address(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

/// The stream that this thread records, and of which context; null: none. A thread records one thing at a time.
thread_local const CudaContext* recording_context = nullptr;
thread_local CUstream recording_stream = nullptr;

int AttributeOf(CUdevice id, CUdevice_attribute attribute) {
  int value = 0;
  return Driver::Use().cuDeviceGetAttribute(&value, attribute, id) == CUDA_SUCCESS ? value : 0;
}

std::string DriverVersion() {
  int version = 0;
  if (Driver::Use().cuDriverGetVersion(&version) != CUDA_SUCCESS) return "of an unknown version";
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string ComputeCapability(CUdevice id) {
  return std::to_string(AttributeOf(id, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)) + "." +
         std::to_string(AttributeOf(id, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
}

std::string Gibibytes(CUdevice id) {
  constexpr size_t kGibibyte = size_t{1} << 30;
  size_t bytes = 0;
  if (Driver::Use().cuDeviceTotalMem(&bytes, id) != CUDA_SUCCESS) return "an unknown amount";
  return std::to_string((bytes + kGibibyte / 2) / kGibibyte) + " GiB";
}

std::string WhyNot(CUdevice id) {
  if (!AttributeOf(id, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)) return "its driver has no memory pools";
  return {};
}

/// Null where the driver has no such device.
const DeviceEntry* EntryOf(const Device& device) {
  for (const DeviceEntry& entry : AllDevices()) {
    if (device.kind == DeviceKind::kCuda && entry.device.id == device.id) return &entry;
  }
  return nullptr;
}

std::vector<DeviceEntry> FindDevices() {
  std::vector<DeviceEntry> entries;
  const Result<Driver>& driver = Driver::Get();
  int count = 0;
  if (!driver || driver->cuDeviceGetCount(&count) != CUDA_SUCCESS) return entries;
  for (int i = 0; i < count; ++i) {
    CUdevice id = 0;
    char name[256] = {};  // as long as the driver's own
    if (driver->cuDeviceGet(&id, i) != CUDA_SUCCESS || driver->cuDeviceGetName(name, sizeof name, id) != CUDA_SUCCESS) continue;
    const std::string words =
        DriverVersion() + " on " + name + " (compute capability " + ComputeCapability(id) + ", " + Gibibytes(id) + ")";
    entries.push_back({{DeviceKind::kCuda, i, 1}, id, name, words, WhyNot(id)});
  }
  return entries;
}

}  // namespace

Result<std::shared_ptr<CudaContext>> CudaContext::Create(const Device& device, CUdevice id, std::string name) {
  size_t memory = 0;
  COLLAGE_CUDA_CALL(cuDeviceTotalMem, &memory, id);
  std::shared_ptr<CudaContext> context(new CudaContext(device, std::move(name), memory, id));
  COLLAGE_TRY_STATUS(context->Start());
  return context;
}

Status CudaContext::Start() {
  const auto attribute = [&](CUdevice_attribute which) { return AttributeOf(id_, which); };
  capabilities_ = {attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
                   static_cast<size_t>(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE))};
  COLLAGE_CUDA_CALL(cuDevicePrimaryCtxRetain, &context_, id_);
  COLLAGE_TRY_STATUS(Enter());
  COLLAGE_CUDA_CALL(cuStreamCreate, &stream_, CU_STREAM_NON_BLOCKING);
  CUmemoryPool pool = nullptr;
  COLLAGE_CUDA_CALL(cuDeviceGetDefaultMemPool, &pool, id_);
  // What is freed is kept for the next allocation instead of given back when the stream is waited for.
  cuuint64_t most = ~cuuint64_t{0};
  COLLAGE_CUDA_CALL(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &most);
  const Status loaded = transpose_.Load();
  if (!loaded) spdlog::warn("{} ({}) converts no layouts, the host does: {}", ToString(device()), name(), loaded.error().message);
  return {};
}

CudaContext::~CudaContext() {
  if (!context_) return;
  const Driver& driver = Driver::Use();
  if (Enter()) {
    if (stream_) driver.cuStreamSynchronize(stream_);
    for (const Mark& mark : marks_) driver.cuEventDestroy(mark.event);
    if (eviction_) driver.cuMemFreeAsync(eviction_, stream_);
    transpose_.Unload();
    if (stream_) driver.cuStreamDestroy(stream_);
  }
  driver.cuDevicePrimaryCtxRelease(id_);
}

Status CudaContext::Enter() const {
  COLLAGE_CUDA_CALL(cuCtxSetCurrent, context_);
  return {};
}

CUstream CudaContext::stream() const { return recording_context == this ? recording_stream : stream_; }

Status CudaContext::CopyIn(void* to, const void* from_host, size_t bytes) {
  if (bytes == 0) return {};
  COLLAGE_TRY_STATUS(Enter());
  COLLAGE_CUDA_CALL(cuMemcpyHtoDAsync, Address(to), from_host, bytes, stream());
  return {};
}

Status CudaContext::CopyOut(void* to_host, const void* from, size_t bytes) {
  if (bytes == 0) return {};
  COLLAGE_TRY_STATUS(Enter());
  COLLAGE_CUDA_CALL(cuMemcpyDtoHAsync, to_host, Address(from), bytes, stream());
  return {};
}

Status CudaContext::CopyWithin(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return {};
  COLLAGE_TRY_STATUS(Enter());
  COLLAGE_CUDA_CALL(cuMemcpyDtoDAsync, Address(to), Address(from), bytes, stream());
  return {};
}

Result<CUevent> CudaContext::RecordEvent() {
  CUevent event = nullptr;
  COLLAGE_TRY_STATUS(Enter());
  COLLAGE_CUDA_CALL(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
  if (const CUresult result = Driver::Use().cuEventRecord(event, stream_); result != CUDA_SUCCESS) {
    Driver::Use().cuEventDestroy(event);
    return FailOf("cuEventRecord", result);
  }
  return event;
}

Status CudaContext::Transpose(const Transposition& transposition, void* to, const void* from) {
  COLLAGE_TRY_STATUS(Enter());
  return transpose_.Give(transposition, Address(to), Address(from), stream());
}

uint64_t CudaContext::Record() {
  const std::lock_guard<std::mutex> lock(marks_mutex_);
  const Result<CUevent> event = RecordEvent();
  marks_.push_back({++last_place_, event ? *event : nullptr});
  return last_place_;
}

Status CudaContext::Wait(uint64_t place) {
  COLLAGE_TRY_STATUS(Enter());
  CUevent last = nullptr;
  {
    const std::lock_guard<std::mutex> lock(marks_mutex_);
    for (; !marks_.empty() && marks_.front().place <= place; marks_.pop_front()) {
      if (last) Driver::Use().cuEventDestroy(last);
      last = marks_.front().event;
    }
  }
  // Another thread may have taken the marks and still wait; and where no event could be recorded, the stream says why.
  if (!last) {
    COLLAGE_CUDA_CALL(cuStreamSynchronize, stream_);
    return {};
  }
  const CUresult result = Driver::Use().cuEventSynchronize(last);
  Driver::Use().cuEventDestroy(last);
  return result == CUDA_SUCCESS ? Status() : FailOf("cuEventSynchronize", result);
}

Result<std::unique_ptr<RecordedWork>> CudaContext::RecordWork(std::vector<std::function<Status()>> parts) {
  auto work = std::make_unique<CudaWork>(*this, std::move(parts));
  COLLAGE_TRY_STATUS(work->Record());
  return work;
}

Result<CUgraphExec> CudaContext::RecordGraph(const std::function<Status()>& give) {
  COLLAGE_TRY_STATUS(Enter());
  const Driver& driver = Driver::Use();
  CUstream stream = nullptr;
  COLLAGE_CUDA_CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  CUgraph graph = nullptr;
  Status given;
  CUresult result = driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  if (result == CUDA_SUCCESS) {
    recording_context = this;
    recording_stream = stream;
    given = give();
    recording_context = nullptr;
    recording_stream = nullptr;
    result = driver.cuStreamEndCapture(stream, &graph);
  }
  driver.cuStreamDestroy(stream);
  CUgraphExec executable = nullptr;
  if (given && result == CUDA_SUCCESS) result = driver.cuGraphInstantiate(&executable, graph, 0);
  if (graph) driver.cuGraphDestroy(graph);
  if (!given) return Fail(given.error());
  if (result != CUDA_SUCCESS) return FailOf("recording a graph", result);
  return executable;
}

Result<bool> CudaContext::EmptyCaches() {
  COLLAGE_TRY_STATUS(Enter());
  // Twice what the second cache holds, so that nothing of before is left whatever it replaces first.
  const size_t words = capabilities_.l2_bytes * 2 / sizeof(uint32_t);
  const std::lock_guard<std::mutex> lock(eviction_mutex_);
  if (!eviction_) COLLAGE_CUDA_CALL(cuMemAllocAsync, &eviction_, words * sizeof(uint32_t), stream_);
  COLLAGE_CUDA_CALL(cuMemsetD32Async, eviction_, 1, words, stream());
  return true;
}

Result<void*> CudaContext::DoAllocate(size_t bytes) {
  COLLAGE_TRY_STATUS(Enter());
  CUdeviceptr address = 0;
  COLLAGE_CUDA_CALL(cuMemAllocAsync, &address, bytes, stream_);
  return std::bit_cast<void*>(address);
}

void CudaContext::DoFree(void* address) {
  if (Enter()) Driver::Use().cuMemFreeAsync(Address(address), stream_);
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
  if (device.kind != DeviceKind::kCuda) {
    const std::string missing = Driver::Get() ? "" : ", and there is none: " + Driver::Get().error().message;
    return Presence::Absent("it runs on GPUs of CUDA only" + missing);
  }
  if (!Driver::Get()) return Presence::Absent(Driver::Get().error().message);
  const DeviceEntry* entry = EntryOf(device);
  if (!entry) return Presence::Absent("the driver finds no such device");
  return entry->reason.empty() ? Presence::Version(entry->version) : Presence::Absent(entry->name + ": " + entry->reason);
}

Result<std::shared_ptr<CudaContext>> ContextOf(const Device& device) {
  static std::mutex mutex;
  static std::map<int, std::shared_ptr<CudaContext>> contexts;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto known = contexts.find(device.id);
  if (device.kind == DeviceKind::kCuda && known != contexts.end()) return known->second;
  const Presence presence = ProbeDevice(device);
  if (!presence.present) return Fail("cuda: " + ToString(device) + ": " + presence.reason);
  const DeviceEntry& entry = *EntryOf(device);
  return contexts[device.id] = COLLAGE_TRY(CudaContext::Create(entry.device, entry.id, entry.name));
}

Result<DeviceMemory> BringConstant(const std::shared_ptr<CudaContext>& context, const Tensor& constant) {
  DeviceMemory memory = COLLAGE_TRY(DeviceMemory::Allocate(context, constant.ByteCount()));
  COLLAGE_TRY_STATUS(context->CopyIn(memory.address(), constant.Bytes(), constant.ByteCount()));
  COLLAGE_TRY_STATUS(context->WaitForAll());
  return memory;
}

}  // namespace collage::cuda
