#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "collage/runtime/execution_plan.h"

namespace collage {

/// What a plan gives to accelerators without the host looking on, recorded to be given again: kernels and copies one behind another on one
/// device, between two steps of the host. Their addresses are the same in every run, as inputs and outputs lie with the host.
class RecordedSteps {
 public:
  /// Steps from `begin`, up to `end`, on one device.
  struct Range {
    size_t begin;
    size_t end;
  };

  explicit RecordedSteps(const ExecutionPlan& plan);

  /// The range that begins with a step; null where none does.
  [[nodiscard]] const Range* At(size_t step) const;
  /// Its work. It is recorded when it is asked for a second time, since what runs for the first time may allocate; null before. `run_step`
  /// gives one step to its device, and is kept. Errors are those of the steps and of the device.
  Result<RecordedWork*> Work(const Range& range, const std::function<Status(size_t step)>& run_step);

 private:
  struct Recording {
    Range range;
    std::shared_ptr<DeviceContext> context;
    bool has_run = false;
    std::unique_ptr<RecordedWork> work;
  };
  std::vector<Recording> recordings_;
  std::vector<size_t> at_;  ///< one a step: which recording begins there
};

}  // namespace collage
