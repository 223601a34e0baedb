#include "collage/lower/lower.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "collage/backend/host_reference_team.h"
#include "collage/backend/tuning.h"
#include "collage/ir/constant_memory.h"
#include "collage/ir/structural.h"
#include "collage/lower/row_blocks.h"
#include "collage/runtime/cpu_context.h"
#include "collage/runtime/parallel.h"
#include "collage/support/clock.h"
#include "collage/support/hash.h"
#include "collage/support/mappings.h"
#include "collage/support/short_list.h"

namespace collage {
namespace {

Result<Variant> ChooseVariant(const Backend& backend, const Function& function, const Device& device, const std::string& name) {
  const std::vector<Variant> variants = backend.Variants(function, device);
  if (variants.empty()) return Fail("backend '" + std::string(backend.Name()) + "' cannot run it");
  if (name.empty()) return variants.front();
  return FindVariant(backend, function, device, name);
}

/// CompilePartition, but from machine code where that is there. Artifacts with large constants are not kept: packing is cheaper than
/// copying them twice.
Result<std::shared_ptr<Kernel>> Build(PartitionCall& call, const Backend& backend, const Device& device, uint64_t key, KernelCache& cache) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  if (const auto known = cache.artifacts.find(key); known != cache.artifacts.end()) return backend.Load(known->second, device);
  const Clock::time_point start = Clock::now();
  std::unique_ptr<Kernel> kernel = COLLAGE_TRY(CompilePartition(call, backend, device));
  KernelCache::Compiled& compiled = cache.compiled[call.record.backend];
  ++compiled.kernels;
  compiled.seconds += Clock::SecondsSince(start);
  std::string artifact = kernel->Serialize();
  if (!artifact.empty() && artifact.size() <= kMostBytes) cache.artifacts.emplace(key, std::move(artifact));
  return kernel;
}

uint64_t KeyOf(const PartitionCall& call) {
  const uint64_t hash = StructuralHash(call.function, {true, {"global_symbol"}});
  GiveBackConstants(call.function);  // the hash has read them
  return HashCombine(hash, HashBytes(call.record.backend + " " + call.record.variant + call.record.device));
}

/// Gives back constants as long as it lives: compilers of whole models read them once, one after another, and pack them.
class GivingBack {
 public:
  explicit GivingBack(const Expr& function)
      : thread_([this, constants = ConstantTensors(function)] {
          constexpr auto kPause = std::chrono::milliseconds(10);  // in which no compiler reads more than some 100 MB
          std::unique_lock lock(mutex_);
          while (!has_ended_.wait_for(lock, kPause, [this] { return ends_; })) {
            for (const Tensor& constant : constants) GiveBack(constant.Bytes(), constant.ByteCount());
          }
        }) {}
  GivingBack(const GivingBack&) = delete;
  GivingBack& operator=(const GivingBack&) = delete;
  ~GivingBack() {
    {
      const std::scoped_lock lock(mutex_);
      ends_ = true;
    }
    has_ended_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable has_ended_;
  bool ends_ = false;
  std::thread thread_;
};

Result<std::shared_ptr<Kernel>> CompileOnce(PartitionCall& call, const Backend& backend, const BuildOptions& options) {
  const Device device = COLLAGE_TRY(DeviceOf(call.record, options.device));
  if (!options.kernels || !call.function) return CompilePartition(call, backend, device);
  const uint64_t key = KeyOf(call);
  KernelCache::Known& known = options.kernels->kernels[key];
  // Not the kernel itself: what it keeps from run to run is one plan's.
  const std::shared_ptr<Kernel> other = known.kernel.lock();
  if (std::unique_ptr<Kernel> twin = other ? other->Twin() : nullptr) return twin;
  std::optional<GivingBack> meanwhile;
  if (options.is_limited()) meanwhile.emplace(call.function);
  std::shared_ptr<Kernel> kernel = COLLAGE_TRY(Build(call, backend, device, key, *options.kernels));
  meanwhile.reset();
  if (other) options.kernels->others.push_back(known);
  known = {kernel, ConstantBytes(call.function)};
  GiveBackConstants(call.function);  // they are packed now, or read where they are by who needs them
  return kernel;
}

}  // namespace

std::optional<double> KernelCache::SecondsToCompile(const std::string& backend) const {
  const auto known = compiled.find(backend);
  if (known == compiled.end() || known->second.kernels == 0) return std::nullopt;
  return known->second.seconds / static_cast<double>(known->second.kernels);
}

size_t KernelCache::Weights() const {
  size_t bytes = 0;
  for (const auto& [key, known] : kernels) bytes += known.kernel.expired() ? 0 : known.weights;
  for (const Known& known : others) bytes += known.kernel.expired() ? 0 : known.weights;
  return bytes;
}

Result<size_t> WeightsToAdd(const IRModule& partitioned, const LowerOptions& options) {
  const PartitionProgram program = COLLAGE_TRY(ToPartitionProgram(partitioned, options.program));
  size_t bytes = 0;
  size_t largest = 0;
  std::unordered_set<uint64_t> seen;
  for (const PartitionCall& call : program.calls) {
    const size_t weights = ConstantBytes(call.function);
    if (weights == 0) continue;
    // Of the large ones nobody looks for a twin: that would read all of it beside what is there.
    if (weights >= kLargeWeights) {
      bytes += weights;
      largest = std::max(largest, weights);
      continue;
    }
    const uint64_t key = KeyOf(call);
    const auto known = options.kernels->kernels.find(key);
    const std::shared_ptr<Kernel> kernel = known == options.kernels->kernels.end() ? nullptr : known->second.kernel.lock();
    const bool has_twin = kernel && kernel->Twin();
    if (has_twin || !seen.insert(key).second) continue;
    bytes += weights;
    largest = std::max(largest, weights);
  }
  return bytes + largest;
}

Result<std::unique_ptr<Kernel>> CompilePartition(PartitionCall& call, const Backend& backend, const Device& device) {
  const Function* function = call.function ? call.function->As<Function>() : nullptr;
  if (!function) return Fail("has no function to compile");
  const Variant variant = COLLAGE_TRY(ChooseVariant(backend, *function, device, call.record.variant));
  call.record.variant = variant.name;
  return backend.Compile(*function, device, variant);
}

Result<LoweredModel> BuildExecutable(PartitionProgram program, const BuildOptions& options) {
  std::unordered_map<std::string, std::string> versions;
  std::vector<Program::KernelCall> calls;
  for (PartitionCall& call : program.calls) {
    if (options.progress.ShouldStop()) return Fail("stopped");
    options.progress.Report({"compile", calls.size(), program.calls.size(), call.record.name});
    const std::string place =
        "partition '" + call.record.name + "'" + (call.record.nodes.empty() ? "" : " (" + ShortList(call.record.nodes) + ")");
    const Device device = COLLAGE_TRY(DeviceOf(call.record, options.device));
    Result<const Backend*> backend = options.find_backend(call.record.backend, device);
    if (!backend) return Fail(backend.error().At(place));
    const auto [version, is_new] = versions.try_emplace(call.record.backend + call.record.device);
    if (is_new) version->second = (*backend)->Probe(device).version;
    call.record.backend_version = version->second;
    Result<std::shared_ptr<Kernel>> kernel = CompileOnce(call, **backend, options);
    if (!kernel) return Fail(kernel.error().At(place));
    Result<std::shared_ptr<CpuContext>> cpu = OpenStatedCpu(call.record.device);
    if (!cpu) return Fail(cpu.error().At(place));
    if (*cpu) kernel = std::make_shared<KernelOnCpu>(std::move(*kernel), std::move(*cpu));
    calls.push_back({call.record, std::move(*kernel), call.inputs, call.outputs});
  }
  Program runnable{program.values, std::move(calls), program.inputs, program.outputs};
  Executable executable = COLLAGE_TRY(Executable::Create(std::move(runnable), options.device));
  return LoweredModel{std::move(program), std::move(executable)};
}

Result<LoweredModel> Lower(const IRModule& partitioned, const LowerOptions& options) {
  PartitionProgram program = COLLAGE_TRY(ToPartitionProgram(partitioned, options.program));
  return BuildExecutable(std::move(program), options);
}

Result<std::vector<Tensor>> RunRemainder(Executable& executable, const Remainder& remainder, std::span<const Tensor> values) {
  const HostReferenceTeam team(executable.device().threads);
  return remainder.Run(
      values, [&](const Remainder::Region& region, std::span<const Tensor> inputs) { return RunRows(executable, region, inputs); });
}

Result<std::vector<Tensor>> RunWhole(Executable& executable, const Remainders& remainders, std::span<const Tensor> inputs) {
  std::vector<Tensor> values = COLLAGE_TRY(executable.Run(inputs));
  const Remainder* remainder = RemainderOf(remainders, COLLAGE_TRY(ProfileFor(inputs, executable.shape_profiles())));
  if (remainder == nullptr) return values;
  return RunRemainder(executable, *remainder, values);
}

}  // namespace collage
