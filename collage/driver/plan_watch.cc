#include "collage/driver/plan_watch.h"

#include <unordered_map>
#include <utility>
#include <vector>

namespace collage {

void WatchKernels(Executable& executable, const Placement& placement, const Plan& plan, Activity& activity) {
  std::unordered_map<std::string, MeasurementKey> keys;
  for (const PlanKernel& kernel : plan.kernels) keys.emplace(kernel.symbol, placement.kernels[kernel.kernel].key);
  std::vector<uint32_t> numbers;
  for (const StepProfile& step : executable.profile()) {
    const auto key = keys.find(step.record.name);
    const bool is_known = step.kind == "kernel" && key != keys.end();
    CacheEntry entry;
    if (is_known) entry.key = key->second;
    entry.measurement.invalid_reason = "is running";
    numbers.push_back(is_known ? activity.NumberOf(ToJsonLine(entry)) : 0);
  }
  executable.Watch(activity.now(), std::move(numbers));
}

Status RunSafely(Executable& executable, std::span<const Tensor> inputs, std::vector<Tensor>& outputs) {
  try {
    return executable.Run(inputs, outputs);
  } catch (const std::exception& error) {
    return Fail(std::string("threw an exception: ") + error.what());
  }
}

std::optional<CacheEntry> InvalidKernel(const std::string& line, const std::string& reason) {
  Result<CacheEntry> entry = EntryFromJsonLine(line);
  if (!entry) return std::nullopt;
  entry->measurement = {{}, reason};
  return std::move(*entry);
}

}  // namespace collage
