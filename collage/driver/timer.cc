#include "collage/driver/timer.h"

#include <filesystem>

#include "collage/cost/worker.h"
#include "collage/support/log.h"

namespace collage {

std::unique_ptr<KernelTimer> MakeTimer(bool isolated) {
  const std::filesystem::path worker = DefaultWorkerProgram();
  if (isolated && std::filesystem::exists(worker)) return std::make_unique<WorkerTimer>(WorkerOptions{worker});
  if (isolated) spdlog::warn("{} is not there: kernels are timed in this process", worker.string());
  return std::make_unique<InProcessTimer>();
}

}  // namespace collage
