#include "collage/cost/kernel_timer.h"

#include "collage/cost/verification.h"

namespace collage {
namespace {

constexpr uint64_t kInputSeed = 1;

Result<std::unique_ptr<Kernel>> Compile(const KernelJob& job) {
  return job.backend->Compile(*job.function->As<Function>(), job.device, job.variant);
}

}  // namespace

Measurement MeasureWithRival(Kernel& kernel, const Device& device, const MeasureOptions& options, const CompileRival& compile_rival) {
  Measurement alone = MeasureKernel(kernel, device, options);
  if (!compile_rival || !IsClose(alone, options)) return alone;
  const Result<std::unique_ptr<Kernel>> rival = compile_rival();
  if (!rival) return alone;
  Measurement beside = MeasureBesideRival(kernel, **rival, device, options);
  return beside.invalid_reason.empty() ? beside : alone;
}

Result<Measurement> InProcessTimer::Measure(const KernelJob& job) {
  const Result<std::unique_ptr<Kernel>> kernel = Compile(job);
  if (!kernel) return Measurement{{}, kernel.error().message};
  return MeasureWithRival(**kernel, job.device, job.options, job.rival ? [&] { return Compile(*job.rival); } : CompileRival());
}

Result<double> InProcessTimer::Difference(const KernelJob& job) {
  const std::unique_ptr<Kernel> kernel = COLLAGE_TRY(Compile(job));
  return DifferenceFromReference(*kernel, job.function, kInputSeed);
}

}  // namespace collage
