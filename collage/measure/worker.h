#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "collage/measure/kernel_timer.h"
#include "collage/measure/worker_messages.h"

namespace collage {

struct WorkerOptions {
  /// The worker program; DefaultWorkerProgram() for the one of this build.
  std::filesystem::path program;
  /// A job that takes longer to be read, compiled, or run is Invalid.
  double most_seconds = 90;
  /// A job that takes the process above this is Invalid.
  size_t most_bytes = size_t{12} << 30;
  /// Processes that compile at the same time.
  size_t at_once = 1;
};

/// Times kernels in processes of their own. One is started again after a crash, a hang, or too much memory; each of these makes its
/// kernel Invalid with the reason, and the compile goes on. So is one for which a device does nothing any more. Of up to AtOnce() kernels
/// each process compiles one; then one after another they are timed, while the other processes wait. One of large weights (kLargeWeights)
/// is compiled beside no other.
class WorkerTimer : public KernelTimer {
 public:
  explicit WorkerTimer(WorkerOptions options);
  ~WorkerTimer() override;

  /// Errors when the worker program cannot be started.
  Result<Measurement> Measure(const KernelJob& job) override;
  Result<std::vector<Measurement>> MeasureEach(std::span<const KernelJob> jobs) override;
  [[nodiscard]] size_t AtOnce() const override { return options_.at_once; }
  [[nodiscard]] size_t Together(std::span<const KernelJob> jobs) const override;
  Result<double> Difference(const KernelJob& job) override;
  /// Asks a new worker where one that is there says so.
  Status CheckDevice(const Backend& backend, const Device& device) override;
  /// Likewise of a job that another process has written (ToMessage).
  Result<Measurement> MeasureMessage(const nlohmann::json& job);

  /// How often a worker was started.
  [[nodiscard]] size_t starts() const { return starts_; }

 private:
  class Process;
  struct Outcome;
  struct Task;
  Result<Outcome> Do(const nlohmann::json& request);
  Result<std::vector<Measurement>> MeasureTogether(std::span<const KernelJob> jobs);
  /// Gives a request to the process of that number.
  Result<Task> Begin(size_t process, const nlohmann::json& request);
  /// Until none of the tasks is at work: each has ended, or waits for a word.
  void Await(std::span<Task> tasks);
  void Receive(Task& task);
  void End(Task& task, std::string invalid_reason);
  void EndAll();

  WorkerOptions options_;
  std::vector<std::unique_ptr<Process>> processes_;
  size_t starts_ = 0;
};

/// collage/collage_worker in the folder of this library, in a build as after an installation.
std::filesystem::path DefaultWorkerProgram();

}  // namespace collage
