#include "collage/runtime/device_context.h"

#include <algorithm>
#include <utility>

#include "collage/support/check.h"
#include "collage/support/clock.h"

namespace collage {
namespace {

/// Parts that are called again each time.
class KeptParts final : public RecordedWork {
 public:
  KeptParts(DeviceContext& context, std::vector<std::function<Status()>> parts) : context_(context), parts_(std::move(parts)) {}

  Status Give() override {
    for (const std::function<Status()>& part : parts_) COLLAGE_TRY_STATUS(part());
    return {};
  }

  Status GiveTimed(std::span<double> seconds) override {
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Clock::time_point start = Clock::now();
      const Status given = parts_[i]();
      COLLAGE_TRY_STATUS(context_.WaitForAll());
      seconds[i] = Clock::SecondsSince(start);
      COLLAGE_TRY_STATUS(given);
    }
    return {};
  }

 private:
  DeviceContext& context_;
  std::vector<std::function<Status()>> parts_;
};

}  // namespace

size_t DeviceContext::allocated_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return allocated_;
}

size_t DeviceContext::refusals() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return refusals_;
}

Status DeviceContext::CheckFits(size_t bytes) const {
  const size_t left = memory_bytes_ - allocated_;
  if (bytes <= left) return {};
  return Fail(ToString(device_) + " (" + name_ + ") has " + std::to_string(memory_bytes_) + " bytes, of which " +
              std::to_string(allocated_) + " are taken; " + std::to_string(bytes) + " more are wanted, " + std::to_string(bytes - left) +
              " too many");
}

Result<void*> DeviceContext::Allocate(size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Result<void*> address = nullptr;
  if (const Status fits = CheckFits(bytes); !fits) {
    address = Fail(fits.error());
  } else {
    address = DoAllocate(std::max<size_t>(bytes, 1));
  }
  if (!address) {
    ++refusals_;
    return address;
  }
  allocations_.emplace(*address, bytes);
  allocated_ += bytes;
  return address;
}

Status DeviceContext::Take(size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Status fits = CheckFits(bytes);
  if (fits) {
    allocated_ += bytes;
  } else {
    ++refusals_;
  }
  return fits;
}

void DeviceContext::GiveBack(size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  allocated_ -= bytes;
}

void DeviceContext::Free(void* address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = allocations_.find(address);
  COLLAGE_CHECK(found != allocations_.end());
  allocated_ -= found->second;
  allocations_.erase(found);
  DoFree(address);
}

Status DeviceContext::Transpose(const Transposition& /*transposition*/, void* /*to*/, const void* /*from*/) {
  COLLAGE_CHECK(false, ToString(device_) + " transposes nothing");
}

Status DeviceContext::Check() {
  (void)WaitForAll();
  const Status works = WaitForAll();
  return works ? works : Fail(ToString(device_) + " (" + name_ + ") does not work any more: " + works.error().message);
}

Result<std::unique_ptr<RecordedWork>> DeviceContext::RecordWork(std::vector<std::function<Status()>> parts) {
  return std::make_unique<KeptParts>(*this, std::move(parts));
}

std::optional<Transposition> TranspositionOn(const DeviceContext* context, const TensorType& type, const Layout& from, const Layout& to) {
  const std::optional<Transposition> transposition = context ? AsTransposition(type, from, to) : std::nullopt;
  return transposition && context->CanTranspose(*transposition) ? transposition : std::nullopt;
}

Result<DeviceMemory> DeviceMemory::Allocate(std::shared_ptr<DeviceContext> context, size_t bytes) {
  void* address = COLLAGE_TRY(context->Allocate(bytes));
  return DeviceMemory(std::move(context), address);
}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(address_, other.address_);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (!address_) return;
  // What still runs may use it. Its error has been seen by whoever waited for a result.
  (void)context_->WaitForAll();
  context_->Free(address_);
}

}  // namespace collage
