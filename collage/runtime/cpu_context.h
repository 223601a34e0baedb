#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "collage/runtime/device_context.h"
#include "collage/runtime/kernel.h"
#include "collage/runtime/processors.h"
#include "collage/support/clock.h"

namespace collage {

/// When work in a stream began and how long it took.
struct StreamTimes {
  Clock::time_point began = {};
  double microseconds = 0;
};

/// Its memory is the host's, so nothing is ever copied between them. Its stream is a thread on its processors; the team of that thread
/// (each host thread has one of its own in OpenMP) inherits them. Programs that run at the same time share it: work of one waits for work
/// of another, and no processor has two threads.
class CpuContext final : public DeviceContext {
 public:
  /// The one of this process for this statement. Errors as CheckUsable.
  static Result<std::shared_ptr<CpuContext>> Open(const CpuStatement& cpu);
  ~CpuContext() override;

  [[nodiscard]] const CpuStatement& statement() const { return cpu_; }

  /// Runs the kernel in the stream. What the spans point to must stay, not the spans. `times` is written before the place is over; may be
  /// null.
  void Give(Kernel& kernel, std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace, StreamTimes* times);

  Status CopyIn(void* to, const void* from_host, size_t bytes) override { return CopyWithin(to, from_host, bytes); }
  Status CopyOut(void* to_host, const void* from, size_t bytes) override { return CopyWithin(to_host, from, bytes); }
  Status CopyWithin(void* to, const void* from, size_t bytes) override;
  uint64_t Record() override;
  /// Gives errors of work that the calling thread has given, and no other's.
  Status Wait(uint64_t place) override;

 protected:
  Result<void*> DoAllocate(size_t bytes) override;
  void DoFree(void* address) override;

 private:
  struct Work {
    Kernel* kernel = nullptr;  // null: a copy
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    void* workspace = nullptr;
    size_t copied_bytes = 0;
    StreamTimes* times = nullptr;
    std::thread::id giver;
  };
  struct Failure {
    std::thread::id giver;
    Error error;
  };

  explicit CpuContext(CpuStatement cpu);
  /// A free slot for the caller to fill; `lock` is held.
  Work& NextSlot(std::unique_lock<std::mutex>& lock);
  void Run();
  void RunNext(Work& work);

  // So many pieces of work may be given and not yet done; who gives more waits. Slots are reused, so that nothing is allocated in a run.
  // Any number is right; so many small kernels keep a CPU busy while the giver waits for another.
  static constexpr size_t kSlots = 64;

  CpuStatement cpu_;
  std::mutex stream_mutex_;
  std::condition_variable given_some_;
  std::condition_variable done_some_;
  std::array<Work, kSlots> slots_;
  std::atomic<uint64_t> given_ = 0;
  std::atomic<uint64_t> done_ = 0;
  bool is_ending_ = false;
  std::vector<Failure> failures_;
  std::vector<std::shared_ptr<std::byte>> memory_;
  std::thread thread_;  // behind all that it uses
};

/// The context, where it is that of a CPU: then its addresses are the host's.
CpuContext* AsCpu(const DeviceContext* context);

/// A kernel that runs in the stream of a CPU.
class KernelOnCpu final : public Kernel {
 public:
  KernelOnCpu(std::shared_ptr<Kernel> kernel, std::shared_ptr<CpuContext> cpu);

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override;
  /// Where the times of what is given next are written; null: nowhere.
  void SetTimes(StreamTimes* times) { times_ = times; }
  [[nodiscard]] std::unique_ptr<Kernel> Twin() const override;
  [[nodiscard]] std::string Serialize() const override { return kernel_->Serialize(); }

 private:
  std::shared_ptr<Kernel> kernel_;
  std::shared_ptr<CpuContext> cpu_;
  StreamTimes* times_ = nullptr;
};

/// The CPU that a record's `device` states, opened; null where it states none.
Result<std::shared_ptr<CpuContext>> OpenStatedCpu(const std::string& record_device);

}  // namespace collage
