#include "collage/measure/kernel_timer.h"

#include "collage/backend/host_reference_team.h"
#include "collage/measure/verification.h"
#include "collage/support/clock.h"

namespace collage {
namespace {

Result<std::unique_ptr<Kernel>> Compile(const KernelJob& job) {
  return job.backend->Compile(*job.function->As<Function>(), job.device, job.variant);
}

}  // namespace

Result<std::vector<Tensor>> InputsOf(const Expr& function, const std::optional<InputRanges>& known, const Device& device) {
  const HostReferenceTeam team(device.threads);
  return SuitableInputs(function, kKernelInputSeed, known);
}

Status CheckDeviceHere(const Backend& backend, const Device& device) {
  const std::shared_ptr<DeviceContext> context = COLLAGE_TRY(backend.Open(device));
  return context ? context->Check() : Status();
}

Result<std::vector<Measurement>> KernelTimer::MeasureEach(std::span<const KernelJob> jobs) {
  std::vector<Measurement> measurements;
  for (const KernelJob& job : jobs) measurements.push_back(COLLAGE_TRY(Measure(job)));
  return measurements;
}

Result<Measurement> InProcessTimer::Measure(const KernelJob& job) {
  const Clock::time_point start = Clock::now();
  const Result<std::unique_ptr<Kernel>> kernel = Compile(job);
  const double compile_seconds = Clock::SecondsSince(start);
  if (!kernel) return Measurement{{}, kernel.error().message};
  const Result<std::vector<Tensor>> inputs = InputsOf(job.function, job.inputs, job.device);
  if (!inputs) return Measurement{{}, inputs.error().message};
  Measurement measurement = MeasureKernel(**kernel, *inputs, job.device, job.options);
  measurement.compile_seconds = compile_seconds;
  return measurement;
}

Result<double> InProcessTimer::Difference(const KernelJob& job) {
  const std::unique_ptr<Kernel> kernel = COLLAGE_TRY(Compile(job));
  const HostReferenceTeam team(job.device.threads);
  return DifferenceFromReference(*kernel, job.function, kKernelInputSeed);
}

}  // namespace collage
