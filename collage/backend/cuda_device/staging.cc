#include "collage/backend/cuda_device/staging.h"

#include <algorithm>
#include <cstring>

#include "collage/backend/cuda_device/driver.h"
#include "collage/runtime/parallel.h"

namespace collage::cuda {
namespace {

constexpr size_t kGrainBytes = 65536;  // as of conversions between layouts

void CopyTogether(std::byte* to, const std::byte* from, size_t bytes, int threads) {
  const auto copy = [&](size_t begin, size_t end) { std::memcpy(to + begin, from + begin, end - begin); };
  // One captured pointer fits into std::function, so that nothing is allocated.
  ParallelFor(bytes, kGrainBytes, threads, [&copy](size_t begin, size_t end) { copy(begin, end); });
}

}  // namespace

Status PinnedStaging::Allocate() {
  if (memory_) return {};
  void* memory = nullptr;
  COLLAGE_CUDA_CALL(cuMemHostAlloc, &memory, kChunks * kChunkBytes, CU_MEMHOSTALLOC_PORTABLE);
  memory_ = static_cast<std::byte*>(memory);
  for (CUevent& event : sent_) COLLAGE_CUDA_CALL(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
  return {};
}

Status PinnedStaging::CopyIn(CUdeviceptr to, const std::byte* from, size_t bytes, int threads, CUstream stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  COLLAGE_TRY_STATUS(Allocate());
  for (size_t begin = 0, chunk = 0; begin < bytes; begin += kChunkBytes, chunk = (chunk + 1) % kChunks) {
    const size_t count = std::min(kChunkBytes, bytes - begin);
    std::byte* staged = memory_ + chunk * kChunkBytes;
    // Also of the copy before this one.
    COLLAGE_CUDA_CALL(cuEventSynchronize, sent_[chunk]);
    CopyTogether(staged, from + begin, count, threads);
    COLLAGE_CUDA_CALL(cuMemcpyHtoDAsync, to + begin, staged, count, stream);
    COLLAGE_CUDA_CALL(cuEventRecord, sent_[chunk], stream);
  }
  return {};
}

void PinnedStaging::Release() {
  for (CUevent& event : sent_) {
    if (event) Driver::Use().cuEventDestroy(event);
  }
  if (memory_) Driver::Use().cuMemFreeHost(memory_);
  memory_ = nullptr;
}

}  // namespace collage::cuda
