#include "collage/runtime/cpu_context.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "collage/support/memory.h"

namespace collage {
namespace {

// Work comes in bursts of microseconds within a run, and a sleeping thread takes tens of them to wake up. So many looks as libgomp's
// threads take (parallel.cc), some 100 us: more would only burn a processor between runs.
constexpr int kLooks = 20000;

/// Until `is_so`, or until it has not been for a while.
template <typename Condition>
void SpinUntil(const Condition& is_so) {
  for (int look = 0; look < kLooks && !is_so(); ++look) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }
}

}  // namespace

Result<std::shared_ptr<CpuContext>> CpuContext::Open(const CpuStatement& cpu) {
  COLLAGE_TRY_STATUS(CheckUsable(cpu));
  static std::mutex mutex;
  static auto* open = new std::map<CpuStatement, std::weak_ptr<CpuContext>>();  // programs may outlive static objects
  const std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<CpuContext>& known = (*open)[cpu];
  std::shared_ptr<CpuContext> context = known.lock();
  if (!context) {
    context.reset(new CpuContext(cpu));
    known = context;
  }
  return context;
}

CpuContext::CpuContext(CpuStatement cpu)
    : DeviceContext(cpu.ToDevice(), "processors " + ToText(cpu.processors), UsableMemory()),
      cpu_(std::move(cpu)),
      thread_([this] { Run(); }) {}

CpuContext::~CpuContext() {
  {
    const std::lock_guard<std::mutex> lock(stream_mutex_);
    is_ending_ = true;
  }
  given_some_.notify_all();
  thread_.join();
}

CpuContext::Work& CpuContext::NextSlot(std::unique_lock<std::mutex>& lock) {
  done_some_.wait(lock, [&] { return given_ - done_ < kSlots; });
  Work& work = slots_[given_ % kSlots];
  work.giver = std::this_thread::get_id();
  return work;
}

void CpuContext::Give(Kernel& kernel, std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace,
                      StreamTimes* times) {
  {
    std::unique_lock<std::mutex> lock(stream_mutex_);
    Work& work = NextSlot(lock);
    work.kernel = &kernel;
    work.inputs.assign(inputs.begin(), inputs.end());
    work.outputs.assign(outputs.begin(), outputs.end());
    work.workspace = workspace;
    work.times = times;
    ++given_;
  }
  given_some_.notify_one();
}

Status CpuContext::CopyWithin(void* to, const void* from, size_t bytes) {
  {
    std::unique_lock<std::mutex> lock(stream_mutex_);
    Work& work = NextSlot(lock);
    work.kernel = nullptr;
    work.inputs.assign(1, from);
    work.outputs.assign(1, to);
    work.copied_bytes = bytes;
    work.times = nullptr;
    ++given_;
  }
  given_some_.notify_one();
  return {};
}

uint64_t CpuContext::Record() { return given_; }

Status CpuContext::Wait(uint64_t place) {
  SpinUntil([&] { return done_.load(std::memory_order_acquire) >= place; });
  std::unique_lock<std::mutex> lock(stream_mutex_);
  done_some_.wait(lock, [&] { return done_ >= place; });
  const auto is_mine = [](const Failure& failure) { return failure.giver == std::this_thread::get_id(); };
  const auto first = std::find_if(failures_.begin(), failures_.end(), is_mine);
  if (first == failures_.end()) return {};
  Error error = first->error;
  std::erase_if(failures_, is_mine);
  return Fail(std::move(error));
}

void CpuContext::Run() {
  KeepThreadOn(cpu_.processors);
  while (true) {
    SpinUntil([&] { return given_.load(std::memory_order_acquire) > done_.load(std::memory_order_relaxed); });
    Work* work = nullptr;
    {
      std::unique_lock<std::mutex> lock(stream_mutex_);
      given_some_.wait(lock, [&] { return is_ending_ || given_ > done_; });
      if (given_ == done_) return;
      work = &slots_[done_ % kSlots];
    }
    RunNext(*work);
  }
}

void CpuContext::RunNext(Work& work) {
  const Clock::time_point began = Clock::now();
  Status status;
  if (work.kernel) {
    status = work.kernel->Run(work.inputs, work.outputs, work.workspace);
  } else {
    std::memcpy(work.outputs[0], work.inputs[0], work.copied_bytes);
  }
  if (work.times) *work.times = {began, Clock::SecondsSince(began) * 1e6};
  {
    const std::lock_guard<std::mutex> lock(stream_mutex_);
    if (!status) failures_.push_back({work.giver, status.error()});
    ++done_;
  }
  done_some_.notify_all();
}

Result<void*> CpuContext::DoAllocate(size_t bytes) {
  memory_.push_back(AllocateWeights(bytes));
  return memory_.back().get();
}

void CpuContext::DoFree(void* address) {
  std::erase_if(memory_, [&](const std::shared_ptr<std::byte>& block) { return block.get() == address; });
}

CpuContext* AsCpu(const DeviceContext* context) {
  const bool is_cpu = context && context->device().kind == DeviceKind::kCpu;
  return is_cpu ? static_cast<CpuContext*>(const_cast<DeviceContext*>(context)) : nullptr;
}

KernelOnCpu::KernelOnCpu(std::shared_ptr<Kernel> kernel, std::shared_ptr<CpuContext> cpu)
    : Kernel(*kernel), kernel_(std::move(kernel)), cpu_(std::move(cpu)) {
  context_ = cpu_;
}

Status KernelOnCpu::Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) {
  cpu_->Give(*kernel_, inputs, outputs, workspace, times_);
  return {};
}

std::unique_ptr<Kernel> KernelOnCpu::Twin() const {
  std::unique_ptr<Kernel> twin = kernel_->Twin();
  if (!twin) return nullptr;
  return std::make_unique<KernelOnCpu>(std::move(twin), cpu_);
}

Result<std::shared_ptr<CpuContext>> OpenStatedCpu(const std::string& record_device) {
  if (!CpuStatement::IsOne(record_device)) return nullptr;
  return CpuContext::Open(COLLAGE_TRY(CpuStatement::Parse(record_device)));
}

}  // namespace collage
