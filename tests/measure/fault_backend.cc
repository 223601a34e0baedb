#include "tests/measure/fault_backend.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/runtime/fake_device.h"

namespace collage {
namespace {

constexpr size_t kLeakedBytes = size_t{256} << 20;

void Hang() {
  while (true) ::pause();
}

/// Of what the kernels of several processes share.
int OpenShared() { return ::open(std::getenv(kSharedFile), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600); }

/// Until another process has come here.
void Meet() {
  const int file = OpenShared();
  struct stat status {};
  if (::write(file, "x", 1) != 1) return;
  while (::fstat(file, &status) == 0 && status.st_size < 2) ::usleep(1000);
  ::close(file);
}

Status RunAlone() {
  const int file = OpenShared();
  const bool is_alone = ::flock(file, LOCK_EX | LOCK_NB) == 0;
  ::usleep(2000);
  ::close(file);
  return is_alone ? Status() : Fail("another kernel runs");
}

class FaultKernel : public Kernel {
 public:
  FaultKernel(const TensorType& type, std::string fault) : bytes_(type.ByteCount()), fault_(std::move(fault)) {
    inputs_.push_back({type, Layout()});
    outputs_.push_back({type, Layout()});
  }
  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void*) override {
    if (fault_ == "crash running") std::raise(SIGSEGV);
    if (fault_ == "hang running") Hang();
    if (fault_ == "throw running") throw std::runtime_error("out of luck");
    if (fault_ == "meet, then alone") COLLAGE_TRY_STATUS(RunAlone());
    if (fault_ == "leak") leaked_.emplace_back(kLeakedBytes, 'x');
    std::memcpy(outputs[0], inputs[0], fault_ == "unwritten" ? bytes_ - sizeof(float) : bytes_);
    Spoil(static_cast<float*>(outputs[0]), bytes_ / sizeof(float));
    return {};
  }

 private:
  void Spoil(float* values, size_t count) {
    if (fault_ == "wrong") values[0] += 1;
    if (fault_ == "wrong in one") values[count - 1] += 3e-4f;
    if (fault_ == "not a number") values[count - 1] = std::numeric_limits<float>::quiet_NaN();
    if (fault_ != "slightly wrong") return;
    for (size_t i = 0; i < count; ++i) values[i] *= 1.0003f;
  }

  size_t bytes_;
  std::string fault_;
  std::vector<std::string> leaked_;  // given back too late
};

/// Of this process.
std::shared_ptr<FakeDevice> Accelerator() {
  static const auto device = std::make_shared<FakeDevice>();
  return device;
}

class BreakingKernel final : public FakeDeviceKernel {
 public:
  using FakeDeviceKernel::FakeDeviceKernel;
  Status Run(std::span<const void* const>, std::span<void* const>, void*) override {
    Accelerator()->good_waits = 0;
    return {};
  }
};

}  // namespace

BackendRules FaultBackend::Rules() const {
  BackendRules rules;
  rules.patterns.push_back({"fault.copy", pattern::CallOf("copy", {pattern::Wildcard()}), {}});
  return rules;
}

std::vector<Variant> FaultBackend::Variants(const Function&, const Device&) const {
  std::vector<Variant> variants;
  for (const char* name : {"crash compiling", "crash running", "hang compiling", "hang running", "leak", "throw compiling", "throw running",
                           "exit", "wrong", "slightly wrong", "wrong in one", "not a number", "unwritten", "slow compiling",
                           "meet, then alone", "breaks its device", "right"}) {
    variants.push_back({name, {Layout()}, {Layout()}});
  }
  return variants;
}

Result<std::shared_ptr<DeviceContext>> FaultBackend::Open(const Device& device) const {
  if (device.kind == DeviceKind::kCpu) return nullptr;
  if (std::getenv(kDeviceIsGone)) Accelerator()->good_waits = 0;
  return Accelerator();
}

Result<std::unique_ptr<Kernel>> FaultBackend::Compile(const Function& function, const Device& device, const Variant& variant) const {
  if (variant.name == "crash compiling") std::raise(SIGSEGV);
  if (variant.name == "hang compiling") Hang();
  if (variant.name == "throw compiling") throw std::runtime_error("out of luck");
  if (variant.name == "exit") ::_exit(3);
  if (variant.name == "meet, then alone") Meet();
  if (variant.name == "slow compiling") ::usleep(300'000);
  auto kernel = std::make_unique<FaultKernel>(*function.parameters[0]->type().AsTensor(), variant.name);
  if (!COLLAGE_TRY(Open(device))) return kernel;
  if (variant.name == "breaks its device") return std::make_unique<BreakingKernel>(Accelerator(), std::move(kernel));
  return std::make_unique<FakeDeviceKernel>(Accelerator(), std::move(kernel));
}

}  // namespace collage
