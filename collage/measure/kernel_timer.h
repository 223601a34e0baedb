#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collage/backend/backend.h"
#include "collage/measure/measure_kernel.h"
#include "collage/op/reference_sample.h"
#include "collage/runtime/device.h"

namespace collage {

/// Of the inputs on which kernels are timed and compared, in whatever process; any.
inline constexpr uint64_t kKernelInputSeed = 1;

/// One way to run one function: what is timed, or compared with the reference.
struct KernelJob {
  Expr function;
  const Backend* backend = nullptr;
  Variant variant;
  Device device;
  MeasureOptions options;
  std::optional<InputRanges> inputs = {};  ///< that suit the function, where such are known
};

/// On which the job is timed. Errors of the reference executor.
Result<std::vector<Tensor>> InputsOf(const Expr& function, const std::optional<InputRanges>& known, const Device& device);

/// Of this process: DeviceContext::Check, and an error where the device cannot be opened. The host always works.
Status CheckDeviceHere(const Backend& backend, const Device& device);

/// Compiles a kernel and times it, or compares it with the reference executor.
class KernelTimer {
 public:
  virtual ~KernelTimer() = default;
  /// What cannot be compiled or run is Invalid with its reason. Errors only when nothing can be timed at all.
  virtual Result<Measurement> Measure(const KernelJob& job) = 0;
  /// The same of several, in their order.
  virtual Result<std::vector<Measurement>> MeasureEach(std::span<const KernelJob> jobs);
  /// How many jobs may be compiled at the same time, and how many of the first of these will be. No two are ever timed at the same time.
  [[nodiscard]] virtual size_t AtOnce() const { return 1; }
  [[nodiscard]] virtual size_t Together(std::span<const KernelJob> jobs) const { return std::min(AtOnce(), jobs.size()); }
  /// See DifferenceFromReference; an error is a reason why this kernel is Invalid.
  virtual Result<double> Difference(const KernelJob& job) = 0;
  /// An error where a device does nothing any more for whoever times that backend's kernels there: what failed on it need not be a kernel's
  /// fault.
  virtual Status CheckDevice(const Backend& backend, const Device& device) = 0;
};

/// In this process: a kernel that crashes or hangs takes the process with it.
class InProcessTimer : public KernelTimer {
 public:
  Result<Measurement> Measure(const KernelJob& job) override;
  Result<double> Difference(const KernelJob& job) override;
  Status CheckDevice(const Backend& backend, const Device& device) override { return CheckDeviceHere(backend, device); }
};

}  // namespace collage
