#include "collage/driver/timer.h"

#include <algorithm>
#include <bit>
#include <filesystem>

#include "collage/backend/registry.h"
#include "collage/ir/visit.h"
#include "collage/measure/worker.h"
#include "collage/support/log.h"

namespace collage {

namespace {

/// No other process can make kernels of the backends that were added to this one.
class TimerByBackend final : public KernelTimer {
 public:
  explicit TimerByBackend(WorkerOptions options) : worker_(std::move(options)) {}
  Result<Measurement> Measure(const KernelJob& job) override { return TimerFor(job).Measure(job); }
  Result<double> Difference(const KernelJob& job) override { return TimerFor(job).Difference(job); }

 private:
  KernelTimer& TimerFor(const KernelJob& job) {
    if (IsAdded(job.backend->Name())) return here_;
    return worker_;
  }

  WorkerTimer worker_;
  InProcessTimer here_;
};

}  // namespace

std::unique_ptr<KernelTimer> MakeTimer(bool isolated) {
  const std::filesystem::path worker = DefaultWorkerProgram();
  if (isolated && std::filesystem::exists(worker)) return std::make_unique<TimerByBackend>(WorkerOptions{worker});
  if (isolated) spdlog::warn("{} is not there: kernels are timed in this process", worker.string());
  return std::make_unique<InProcessTimer>();
}

MeasureOptions ForModel(const Function& function, MeasureOptions measure) {
  constexpr size_t kStaysInCache = size_t{1} << 20;
  constexpr size_t kMostEvicted = size_t{4} << 20;
  size_t weights = 0;
  PostOrder(function.body, [&](const Expr& expr) {
    if (const Constant* constant = expr->As<Constant>()) weights += constant->value.ByteCount();
  });
  measure.eviction_bytes = weights < kStaysInCache ? 0 : std::bit_floor(std::min(weights, kMostEvicted));
  return measure;
}

}  // namespace collage
