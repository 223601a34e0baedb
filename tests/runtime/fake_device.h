#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "collage/runtime/device_context.h"
#include "collage/runtime/kernel.h"

namespace collage {

/// An accelerator for tests. Its addresses are none of the host's: whoever follows one crashes, and a host address is none of its own.
/// It runs its stream only when somebody waits for it, so that whoever does not wait finds nothing, and what is overwritten too early is
/// wrong. Its memory may be small, its copies may fail, and it may be lost.
class FakeDevice : public DeviceContext {
 public:
  /// Of a part of recorded work, as its clock tells.
  static constexpr double kSecondsOfPart = 3e-6;
  static constexpr const char* kLost = "it has fallen off the bus";

  explicit FakeDevice(int id = 0, size_t memory_bytes = size_t{1} << 30)
      : DeviceContext({DeviceKind::kCuda, id, 1}, "fake accelerator", memory_bytes), next_(kFirst + (uintptr_t(id) << 40)) {}
  ~FakeDevice() override {
    for (auto& [address, block] : blocks_) std::free(block.memory);
  }

  Status CopyIn(void* to, const void* from_host, size_t bytes) override {
    ++copies_in;
    if (on_copy) Give([this, bytes] { return on_copy(bytes), Status(); });
    return Give([this, to, from_host, bytes]() -> Status {
      COLLAGE_TRY_STATUS(CheckHost(from_host));
      std::memcpy(COLLAGE_TRY(HostAddress(to, bytes)), from_host, bytes);
      return {};
    });
  }
  Status CopyOut(void* to_host, const void* from, size_t bytes) override {
    ++copies_out;
    if (on_copy) Give([this, bytes] { return on_copy(bytes), Status(); });
    return Give([this, to_host, from, bytes]() -> Status {
      COLLAGE_TRY_STATUS(CheckHost(to_host));
      std::memcpy(to_host, COLLAGE_TRY(HostAddress(from, bytes)), bytes);
      return {};
    });
  }
  Status CopyWithin(void* to, const void* from, size_t bytes) override {
    return Give([this, to, from, bytes]() -> Status {
      std::memcpy(COLLAGE_TRY(HostAddress(to, bytes)), COLLAGE_TRY(HostAddress(from, bytes)), bytes);
      return {};
    });
  }
  [[nodiscard]] bool CanTranspose(const Transposition& /*transposition*/) const override { return transposes; }
  Status Transpose(const Transposition& transposition, void* to, const void* from) override {
    ++transpositions;
    return Give([this, t = transposition, to, from]() -> Status {
      const size_t bytes = static_cast<size_t>(t.batches * t.rows * t.columns) * t.element_bytes;
      const auto* source = static_cast<const std::byte*>(COLLAGE_TRY(HostAddress(from, bytes)));
      auto* target = static_cast<std::byte*>(COLLAGE_TRY(HostAddress(to, bytes)));
      for (int64_t i = 0; i < t.batches * t.rows * t.columns; ++i) {
        const int64_t row = i / t.columns % t.rows;
        const int64_t place = (i / (t.rows * t.columns) * t.columns + i % t.columns) * t.rows + row;
        std::memcpy(target + static_cast<size_t>(place) * t.element_bytes, source + static_cast<size_t>(i) * t.element_bytes,
                    t.element_bytes);
      }
      return {};
    });
  }
  uint64_t Record() override { return given_; }
  Status Wait(uint64_t place) override {
    ++waits;
    if (good_waits == 0) {
      done_ += stream_.size();
      stream_.clear();
      return Fail(kLost);
    }
    if (good_waits > 0) --good_waits;
    Status status;
    for (; done_ < place; ++done_) {
      const Status ran = stream_.front()();
      if (status) status = ran;
      stream_.pop_front();
    }
    return status;
  }

  /// What the parts give is kept, and given with the same addresses each time.
  Result<std::unique_ptr<RecordedWork>> RecordWork(std::vector<std::function<Status()>> parts) override {
    const size_t before = stream_.size();
    for (const std::function<Status()>& part : parts) COLLAGE_TRY_STATUS(part());
    const auto begin = stream_.begin() + static_cast<std::ptrdiff_t>(before);
    auto work = std::make_unique<Recorded>(*this, std::vector<std::function<Status()>>(begin, stream_.end()), parts.size());
    given_ -= stream_.size() - before;
    stream_.erase(begin, stream_.end());
    ++recordings;
    return work;
  }

  /// Runs when somebody waits.
  Status Give(std::function<Status()> work) {
    stream_.push_back(std::move(work));
    ++given_;
    return {};
  }
  /// Where the device keeps what it has at an address; an error for what is not its own.
  [[nodiscard]] Result<void*> HostAddress(const void* address, size_t bytes) const {
    const auto at = reinterpret_cast<uintptr_t>(address);
    auto block = blocks_.upper_bound(at);
    if (block == blocks_.begin()) return Fail("an address that is not the device's was given to it");
    --block;
    if (at + bytes > block->first + block->second.bytes) return Fail("an address that is not the device's was given to it");
    return static_cast<std::byte*>(block->second.memory) + (at - block->first);
  }

  int copies_in = 0;
  int copies_out = 0;
  bool transposes = false;  ///< whether it converts layouts itself
  int transpositions = 0;
  int waits = 0;
  int recordings = 0;
  int recorded_runs = 0;                      ///< of all recordings
  std::function<void(size_t bytes)> on_copy;  ///< when one runs: what it costs
  size_t most_allocated = 0;                  ///< bytes at once
  int good_copies = -1;                       ///< so many succeed, then each fails; negative: all succeed
  int good_waits = -1;                        ///< likewise: then it is lost, and does nothing any more

 protected:
  Result<void*> DoAllocate(size_t bytes) override {
    if (good_waits == 0) return Fail(kLost);
    const size_t rounded = (bytes + 63) / 64 * 64;
    void* memory = std::aligned_alloc(64, rounded);
    std::memset(memory, 0xa5, rounded);
    void* address = reinterpret_cast<void*>(next_);
    blocks_[next_] = {memory, bytes};
    allocated_here_ += bytes;
    most_allocated = std::max(most_allocated, allocated_here_);
    next_ += rounded + 4096;
    return address;
  }
  void DoFree(void* address) override {
    const auto block = blocks_.find(reinterpret_cast<uintptr_t>(address));
    std::free(block->second.memory);
    allocated_here_ -= block->second.bytes;
    blocks_.erase(block);
  }

 private:
  class Recorded final : public RecordedWork {
   public:
    Recorded(FakeDevice& device, std::vector<std::function<Status()>> work, size_t parts)
        : device_(device), work_(std::move(work)), parts_(parts) {}
    Status Give() override {
      ++device_.recorded_runs;
      for (const std::function<Status()>& one : work_) COLLAGE_TRY_STATUS(device_.Give(one));
      return {};
    }
    Status GiveTimed(std::span<double> seconds) override {
      COLLAGE_TRY_STATUS(Give());
      for (size_t i = 0; i < parts_; ++i) seconds[i] = kSecondsOfPart;
      return device_.WaitForAll();
    }

   private:
    FakeDevice& device_;
    std::vector<std::function<Status()>> work_;
    size_t parts_;
  };

  /// No process has memory there on this architecture.
  static constexpr uintptr_t kFirst = uintptr_t{1} << 56;

  Status CheckHost(const void* address) {
    if (good_copies == 0) return Fail("the copy failed");
    if (good_copies > 0) --good_copies;
    return reinterpret_cast<uintptr_t>(address) < kFirst ? Status() : Fail("a device's address was given for one of the host's");
  }

  struct Block {
    void* memory;
    size_t bytes;
  };
  std::map<uintptr_t, Block> blocks_;
  size_t allocated_here_ = 0;
  uintptr_t next_;
  std::deque<std::function<Status()>> stream_;
  uint64_t given_ = 0;
  uint64_t done_ = 0;
};

/// A kernel of the host's that runs on such a device.
class FakeDeviceKernel : public Kernel {
 public:
  FakeDeviceKernel(std::shared_ptr<FakeDevice> device, std::shared_ptr<Kernel> kernel) : device_(device), kernel_(std::move(kernel)) {
    inputs_ = kernel_->inputs();
    outputs_ = kernel_->outputs();
    workspace_bytes_ = kernel_->workspace_bytes();
    accumulated_input_ = kernel_->accumulated_input();
    context_ = std::move(device);
  }
  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    const std::vector<const void*> from(inputs.begin(), inputs.end());
    const std::vector<void*> to(outputs.begin(), outputs.end());
    return device_->Give([this, from, to, workspace]() -> Status {
      std::vector<const void*> host_inputs;
      std::vector<void*> host_outputs;
      for (size_t i = 0; i < from.size(); ++i) host_inputs.push_back(COLLAGE_TRY(device_->HostAddress(from[i], BytesOf(inputs_[i]))));
      for (size_t i = 0; i < to.size(); ++i) host_outputs.push_back(COLLAGE_TRY(device_->HostAddress(to[i], BytesOf(outputs_[i]))));
      void* scratch = workspace_bytes_ > 0 ? COLLAGE_TRY(device_->HostAddress(workspace, workspace_bytes_)) : nullptr;
      return kernel_->Run(host_inputs, host_outputs, scratch);
    });
  }

 private:
  static size_t BytesOf(const Port& port) { return PhysicalByteCount(port.type, port.layout); }

  std::shared_ptr<FakeDevice> device_;
  std::shared_ptr<Kernel> kernel_;
};

}  // namespace collage
