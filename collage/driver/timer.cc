#include "collage/driver/timer.h"

#include <algorithm>
#include <bit>
#include <filesystem>

#include "collage/backend/registry.h"
#include "collage/driver/compile.h"
#include "collage/ir/visit.h"
#include "collage/measure/worker.h"
#include "collage/support/log.h"
#include "collage/support/memory.h"

namespace collage {

namespace {

/// No other process can make kernels of the backends that were added to this one.
class TimerByBackend final : public KernelTimer {
 public:
  explicit TimerByBackend(WorkerOptions options) : worker_(std::move(options)) {}
  Result<Measurement> Measure(const KernelJob& job) override { return TimerFor(*job.backend).Measure(job); }
  Result<double> Difference(const KernelJob& job) override { return TimerFor(*job.backend).Difference(job); }
  Status CheckDevice(const Backend& backend, const Device& device) override { return TimerFor(backend).CheckDevice(backend, device); }
  Result<std::vector<Measurement>> MeasureEach(std::span<const KernelJob> jobs) override {
    return AreAllThere(jobs) ? worker_.MeasureEach(jobs) : KernelTimer::MeasureEach(jobs);
  }
  [[nodiscard]] size_t AtOnce() const override { return worker_.AtOnce(); }
  [[nodiscard]] size_t Together(std::span<const KernelJob> jobs) const override {
    return AreAllThere(jobs.first(std::min(AtOnce(), jobs.size()))) ? worker_.Together(jobs) : 1;
  }

 private:
  static bool AreAllThere(std::span<const KernelJob> jobs) {
    return std::none_of(jobs.begin(), jobs.end(), [](const KernelJob& job) { return IsAdded(job.backend->Name()); });
  }
  KernelTimer& TimerFor(const Backend& backend) {
    if (IsAdded(backend.Name())) return here_;
    return worker_;
  }

  WorkerTimer worker_;
  InProcessTimer here_;
};

}  // namespace

std::unique_ptr<KernelTimer> MakeTimer(bool isolated, int threads) {
  // What is asked for beside what is needed may be in vain. For eight at once that is known: 4% more kernels (docs/design/fleet.md).
  constexpr size_t kMostAtOnce = 8;
  // Libraries, and several times the weights that may be compiled beside others (kLargeWeights). Half of the memory is the compile's own.
  constexpr size_t kBytesOfProcess = size_t{1} << 30;
  const std::filesystem::path worker = DefaultWorkerProgram();
  if (isolated && std::filesystem::exists(worker)) {
    WorkerOptions options{worker};
    const size_t fit = std::max<size_t>(1, UsableMemory() / 2 / kBytesOfProcess);
    options.at_once = std::min({static_cast<size_t>(threads), kMostAtOnce, fit});
    return std::make_unique<TimerByBackend>(std::move(options));
  }
  if (isolated) spdlog::warn("{} is not there: kernels are timed in this process", worker.string());
  return std::make_unique<InProcessTimer>();
}

MeasureOptions WithinBudget(MeasureOptions measure, double budget) {
  measure.patience_seconds *= std::min(1.0, budget / CompileOptions::kUsualBudget);
  return measure;
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
