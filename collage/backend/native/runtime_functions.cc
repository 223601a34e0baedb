#include "collage/backend/native/runtime_functions.h"

#include <dlfcn.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "collage/runtime/parallel.h"

namespace collage::native {
namespace {

// A vector may be loaded a little before or after what it needs.
constexpr size_t kMargin = 128;

class SpinLock {
 public:
  explicit SpinLock(std::atomic_flag& flag) : flag_(flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) __builtin_ia32_pause();
  }
  ~SpinLock() { flag_.clear(std::memory_order_release); }
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

 private:
  std::atomic_flag& flag_;
};

using Task = int (*)(void* context, int index, uint8_t* closure);

int DoParallelFor(void* context, Task task, int minimum, int size, uint8_t* closure) {
  struct Job {
    void* context;
    Task task;
    int minimum;
    uint8_t* closure;
    std::atomic<int> error{0};
  } job{context, task, minimum, closure};
  if (size <= 0) return 0;
  ParallelFor(static_cast<size_t>(size), 1, static_cast<RunContext*>(context)->threads, [&job](size_t begin, size_t end) {
    for (size_t i = begin; i < end && job.error.load(std::memory_order_relaxed) == 0; ++i) {
      const int error = job.task(job.context, job.minimum + static_cast<int>(i), job.closure);
      if (error != 0) job.error.store(error, std::memory_order_relaxed);
    }
  });
  return job.error;
}

void* Malloc(void* context, size_t bytes) { return static_cast<RunContext*>(context)->arena->Take(bytes); }
void Free(void* context, void* block) { static_cast<RunContext*>(context)->arena->GiveBack(block); }
void ReportError(void*, const char*) {}
int AnyError(void*) { return -1; }

}  // namespace

Arena::~Arena() {
  for (const Block& block : blocks_) std::free(block.memory);
}

void* Arena::Take(size_t bytes) {
  const SpinLock lock(busy_);
  Block* best = nullptr;
  for (Block& block : blocks_) {
    if (!block.taken && block.bytes >= bytes && (!best || block.bytes < best->bytes)) best = &block;
  }
  if (!best) {
    const size_t rounded = (bytes + 2 * kMargin + 63) / 64 * 64;
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, rounded));
    if (!memory) return nullptr;
    // Lanes beyond the data are computed and dropped; they should not be slow (denormal) numbers.
    std::memset(memory, 0, rounded);
    blocks_.push_back({memory, bytes, false});
    best = &blocks_.back();
  }
  best->taken = true;
  return best->memory + kMargin;
}

void Arena::GiveBack(void* block) {
  const SpinLock lock(busy_);
  for (Block& candidate : blocks_) {
    if (candidate.memory + kMargin == block) candidate.taken = false;
  }
}

void* ResolveRuntimeFunction(const std::string& name) {
  static const std::unordered_map<std::string, void*> functions = {
      {"halide_do_par_for", reinterpret_cast<void*>(&DoParallelFor)},
      {"halide_malloc", reinterpret_cast<void*>(&Malloc)},
      {"halide_free", reinterpret_cast<void*>(&Free)},
      {"halide_error", reinterpret_cast<void*>(&ReportError)},
  };
  if (const auto found = functions.find(name); found != functions.end()) return found->second;
  if (name.starts_with("halide_error_")) return reinterpret_cast<void*>(&AnyError);
  static void* const mathematics = ::dlopen("libm.so.6", RTLD_LAZY | RTLD_LOCAL);
  void* function = mathematics ? ::dlsym(mathematics, name.c_str()) : nullptr;
  return function ? function : ::dlsym(RTLD_DEFAULT, name.c_str());  // memset, memcpy
}

}  // namespace collage::native
