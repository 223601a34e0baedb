#include "tools/ran_steps.h"

#include <algorithm>
#include <chrono>

namespace collage::tools {

std::vector<const StepProfile*> RanSteps(const Executable& executable) {
  std::vector<const StepProfile*> ran;
  for (const StepProfile& step : executable.profile()) {
    if (step.calls > 0) ran.push_back(&step);
  }
  std::stable_sort(ran.begin(), ran.end(), [](const StepProfile* a, const StepProfile* b) { return a->last_began < b->last_began; });
  return ran;
}

double BeganAfterMicroseconds(const StepProfile& first, const StepProfile& step) {
  return std::chrono::duration<double, std::micro>(step.last_began - first.last_began).count();
}

}  // namespace collage::tools
