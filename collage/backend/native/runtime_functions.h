#pragma once

// The functions that generated code calls, in place of Halide's own runtime: threads come from the process-wide pool, and
// memory from the kernel's arena.

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

namespace collage::native {

/// Scratch blocks of one kernel, kept from run to run. Threads of one run may take and give back at the same time.
class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// 64-byte aligned, readable a vector beyond both ends; null when there is no memory.
  void* Take(size_t bytes);
  void GiveBack(void* block);

 private:
  struct Block {
    std::byte* memory;
    size_t bytes;
    bool taken;
  };
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  std::vector<Block> blocks_;
};

/// What generated code gets as its user context.
struct RunContext {
  int threads = 1;
  Arena* arena = nullptr;
};

/// Address of a function that generated code may call, or null.
void* ResolveRuntimeFunction(const std::string& name);

}  // namespace collage::native
