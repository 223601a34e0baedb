#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "collage/runtime/device.h"
#include "collage/runtime/transposition.h"
#include "collage/support/result.h"

namespace collage {

/// Work in parts, with its addresses, that can be given to a device's stream again and again.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  /// Gives it to the stream. Errors are the device's.
  virtual Status Give() = 0;
  /// The same, waits for it, and says how long each part took, seconds: by the device's own clock where it has one, else by the host's.
  virtual Status GiveTimed(std::span<double> seconds) = 0;
};

/// A device in use that has memory of its own: who allocates there, and the one stream in which its kernels and copies run, in the order in
/// which they were given. All backends of a device share its context, so that a value passes between their kernels without a copy.
///
/// Addresses are the device's: one may add bytes within an allocation, and nobody but the device reads or writes behind them. What is given
/// to the stream has not run when the call returns; errors may come as late as in Wait. Any thread may call.
class DeviceContext {
 public:
  virtual ~DeviceContext() = default;
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  [[nodiscard]] const Device& device() const { return device_; }
  /// What the maker calls it.
  [[nodiscard]] const std::string& name() const { return name_; }
  /// What the device has for all who use it, bytes.
  [[nodiscard]] size_t memory_bytes() const { return memory_bytes_; }
  [[nodiscard]] size_t allocated_bytes() const;
  /// How often more was asked for than it has left.
  [[nodiscard]] size_t refusals() const;

  /// Aligned as kernels want it. Errors say by how much the memory is exceeded.
  Result<void*> Allocate(size_t bytes);
  void Free(void* address);

  /// Host memory must stay, and stay as it is, until the stream has been waited for.
  virtual Status CopyIn(void* to, const void* from_host, size_t bytes) = 0;
  /// Nobody may read host memory before the stream has been waited for.
  virtual Status CopyOut(void* to_host, const void* from, size_t bytes) = 0;
  virtual Status CopyWithin(void* to, const void* from, size_t bytes) = 0;
  /// Whether the device itself brings tensors from one layout into another in this way. What it does not, the host does.
  [[nodiscard]] virtual bool CanTranspose(const Transposition& /*transposition*/) const { return false; }
  /// Of what it can; `from` and `to` do not overlap.
  virtual Status Transpose(const Transposition& transposition, void* to, const void* from);

  /// A place in the stream: behind all that was given so far.
  virtual uint64_t Record() = 0;
  /// Until all before that place has run. The error of whatever has failed since the last call.
  virtual Status Wait(uint64_t place) = 0;
  Status WaitForAll() { return Wait(Record()); }
  /// An error where the device does nothing for this process any more: it is gone, or what ran there has broken it. Then whatever failed
  /// before is nobody's fault in particular. What has failed so far is taken as told, as by Wait.
  Status Check();

  /// What the parts give to the stream; it does not run now. They wait for nothing, have been called before, and may be called again as
  /// long as the work lives, in their order. Where a device records nothing they are, each time. Errors are those of the parts and of the
  /// device.
  virtual Result<std::unique_ptr<RecordedWork>> RecordWork(std::vector<std::function<Status()>> parts);
  /// Gives the stream a fixed piece of work that leaves nothing of use in the device's caches, and says true; for devices of which that is
  /// known, and which time what they are given by a clock of their own.
  virtual Result<bool> EmptyCaches() { return false; }

 protected:
  DeviceContext(const Device& device, std::string name, size_t memory_bytes)
      : device_(device), name_(std::move(name)), memory_bytes_(memory_bytes) {}
  virtual Result<void*> DoAllocate(size_t bytes) = 0;
  virtual void DoFree(void* address) = 0;
  /// For memory that has no address: it counts like all other. Errors as of Allocate.
  Status Take(size_t bytes);
  void GiveBack(size_t bytes);

 private:
  [[nodiscard]] Status CheckFits(size_t bytes) const;

  Device device_;
  std::string name_;
  size_t memory_bytes_;
  mutable std::mutex mutex_;
  std::unordered_map<void*, size_t> allocations_;
  size_t allocated_ = 0;
  size_t refusals_ = 0;
};

/// How a device itself brings a tensor from one layout into another; nothing where it does not, or where `context` is null, the host.
std::optional<Transposition> TranspositionOn(const DeviceContext* context, const TensorType& type, const Layout& from, const Layout& to);

/// An allocation that is freed with it.
class DeviceMemory {
 public:
  static Result<DeviceMemory> Allocate(std::shared_ptr<DeviceContext> context, size_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept : context_(std::move(other.context_)), address_(other.address_) { other.address_ = nullptr; }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();

  [[nodiscard]] std::byte* address() const { return static_cast<std::byte*>(address_); }

 private:
  DeviceMemory(std::shared_ptr<DeviceContext> context, void* address) : context_(std::move(context)), address_(address) {}

  std::shared_ptr<DeviceContext> context_;
  void* address_;
};

}  // namespace collage
