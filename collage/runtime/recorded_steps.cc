#include "collage/runtime/recorded_steps.h"

#include <algorithm>

#include "collage/runtime/cpu_context.h"

namespace collage {
namespace {

using Step = ExecutionPlan::Step;
constexpr size_t kNone = static_cast<size_t>(-1);

bool IsRecordable(const ExecutionPlan& plan, const Step& step) {
  if (step.kind == Step::Kind::kTransfer || step.kind == Step::Kind::kWait) return false;
  const auto& context = plan.arenas[step.device].context;
  // The stream of a CPU is a thread, which is given functions in any case.
  return context && !AsCpu(context.get());
}

}  // namespace

RecordedSteps::RecordedSteps(const ExecutionPlan& plan) : at_(plan.steps.size(), kNone) {
  for (size_t begin = 0; begin < plan.steps.size();) {
    size_t end = begin;
    while (end < plan.steps.size() && IsRecordable(plan, plan.steps[end]) && plan.steps[end].device == plan.steps[begin].device) ++end;
    if (end > begin) {
      at_[begin] = recordings_.size();
      recordings_.push_back({{begin, end}, plan.arenas[plan.steps[begin].device].context, false, nullptr});
    }
    begin = std::max(end, begin + 1);
  }
}

const RecordedSteps::Range* RecordedSteps::At(size_t step) const { return at_[step] == kNone ? nullptr : &recordings_[at_[step]].range; }

Result<RecordedWork*> RecordedSteps::Work(const Range& range, const std::function<Status(size_t step)>& run_step) {
  Recording& recording = recordings_[at_[range.begin]];
  if (!recording.has_run) {
    recording.has_run = true;
    return nullptr;
  }
  if (!recording.work) {
    std::vector<std::function<Status()>> parts;
    for (size_t step = range.begin; step < range.end; ++step) parts.emplace_back([run_step, step] { return run_step(step); });
    recording.work = COLLAGE_TRY(recording.context->RecordWork(std::move(parts)));
  }
  return recording.work.get();
}

}  // namespace collage
