#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "collage/measure/kernel_timer.h"
#include "collage/measure/worker_messages.h"

namespace collage {

struct WorkerOptions {
  /// The worker program; DefaultWorkerProgram() for the one of this build.
  std::filesystem::path program;
  /// A job that takes longer is Invalid.
  double most_seconds = 90;
  /// A job that takes the process above this is Invalid.
  size_t most_bytes = size_t{12} << 30;
};

/// Times kernels in a process of their own, which is started again after a crash, a hang, or too much memory; each of these makes
/// the kernel Invalid with its reason, and the compile goes on.
class WorkerTimer : public KernelTimer {
 public:
  explicit WorkerTimer(WorkerOptions options);
  ~WorkerTimer() override;

  /// Errors when the worker program cannot be started.
  Result<Measurement> Measure(const KernelJob& job) override;
  Result<double> Difference(const KernelJob& job) override;
  /// Likewise of a job that another process has written (ToMessage).
  Result<Measurement> MeasureMessage(const nlohmann::json& job);

  /// How often a worker was started.
  [[nodiscard]] size_t starts() const { return starts_; }

 private:
  class Process;
  struct Outcome;
  Result<Outcome> Do(const char* action, const nlohmann::json& job);

  WorkerOptions options_;
  std::unique_ptr<Process> process_;
  size_t starts_ = 0;
};

/// collage/collage_worker in the folder of this library, in a build as after an installation.
std::filesystem::path DefaultWorkerProgram();

}  // namespace collage
