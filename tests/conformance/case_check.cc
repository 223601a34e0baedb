#include "tests/conformance/case_check.h"

#include <algorithm>
#include <exception>
#include <set>

#include "collage/ir/permitted_precision.h"
#include "collage/ir/structural.h"
#include "collage/support/hash.h"
#include "tests/conformance/backends.h"

namespace collage::conformance {
namespace {

/// Enough for the families of programs, which share most, and few enough for memory.
constexpr size_t kMostCompiled = 256;

/// Problems of one place.
class Problems {
 public:
  Problems(std::string place, CaseResult& result) : place_(std::move(place)), result_(result) {}
  /// Nothing for an empty one.
  void Add(const std::string& problem, const std::string& when = "") {
    if (!problem.empty()) result_.problems.push_back(place_ + ": " + problem + (when.empty() ? "" : " (" + when + ")"));
  }

 private:
  std::string place_;
  CaseResult& result_;
};

void CheckLayouts(const std::vector<Port>& ports, const std::vector<Layout>& layouts, const std::string& what, Problems& problems) {
  if (ports.size() != layouts.size()) {
    problems.Add("the kernel has " + std::to_string(ports.size()) + " " + what + "s, its variant " + std::to_string(layouts.size()));
    return;
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].layout == layouts[i]) continue;
    problems.Add(what + " " + std::to_string(i) + " of the kernel is " + ports[i].layout.ToString() + ", of its variant " +
                 layouts[i].ToString());
  }
}

std::string Run(KernelRunner& runner, const Sample& sample) {
  return runner.Check(sample.inputs, sample.expected, sample.steps, sample.tolerance);
}

}  // namespace

Device CaseChecker::On(int threads) const { return DeviceFor(backend_, Device{DeviceKind::kCpu, 0, threads}); }

Result<CaseChecker::Runner> CaseChecker::KernelOf(const Expr& function, const Device& device, const Variant& variant) {
  const uint64_t hash = HashBytes(variant.name, HashCombine(StructuralHash(function), static_cast<uint64_t>(device.threads)));
  const auto same = std::find_if(compiled_.begin(), compiled_.end(), [&](const Compiled& one) { return one.hash == hash; });
  if (same != compiled_.end()) return same->runner;
  auto runner = std::make_shared<KernelRunner>(COLLAGE_TRY(backend_.Compile(*function->As<Function>(), device, variant)), device.threads);
  compiled_.push_back({hash, runner});
  if (compiled_.size() > kMostCompiled) compiled_.pop_front();
  return runner;
}

void CaseChecker::CheckVariant(const Partition& partition, const Device& device, const Variant& variant, const std::vector<Sample>& samples,
                               CaseResult& result) {
  Problems problems(partition.name + ", variant " + variant.name + ", threads " + std::to_string(device.threads), result);
  const Result<Runner> runner = KernelOf(partition.function, device, variant);
  if (!runner) return problems.Add("it was accepted, but does not compile: " + runner.error().message);
  ++result.kernels;
  CheckLayouts((*runner)->kernel().inputs(), variant.inputs, "input", problems);
  CheckLayouts((*runner)->kernel().outputs(), variant.outputs, "output", problems);
  for (const Sample& sample : samples) problems.Add(Run(**runner, sample));
  (*runner)->ChangeBuffers();
  problems.Add(Run(**runner, samples[0]), "at other addresses");
  if (earlier_.runner) {
    problems.Add(Run(*earlier_.runner, earlier_.sample), "an earlier kernel, run again");
    problems.Add(Run(**runner, samples[0]), "after another kernel");
  }
  earlier_ = {*runner, samples[0]};
}

void CaseChecker::CheckPartition(const Partition& partition, const std::vector<Sample>& samples, int threads, CaseResult& result) {
  const std::vector<Variant> variants = backend_.Variants(*partition.function->As<Function>(), On(threads));
  Problems problems(partition.name, result);
  if (variants.empty()) problems.Add("it was accepted, but there is no way to run it");
  std::set<std::string> names;
  for (const Variant& variant : variants) {
    if (!names.insert(variant.name).second) problems.Add("two variants named " + variant.name);
    CheckVariant(partition, On(threads), variant, samples, result);
  }
  for (const char* permit : {"bf16", "int8-weights"})
    CheckPermitted(partition, *Precision::Parse(permit), variants, On(threads), samples, result);
}

void CaseChecker::CheckPermitted(const Partition& partition, const Precision& precision, const std::vector<Variant>& usual,
                                 const Device& device, std::vector<Sample> samples, CaseResult& result) {
  Partition permitted = partition;
  permitted.name += ", " + ToString(precision);
  permitted.function = WithPrecision(partition.function, precision);
  for (Sample& sample : samples) sample.tolerance = precision.tolerance;
  std::set<std::string> names;
  for (const Variant& variant : usual) names.insert(variant.name);
  size_t unchanged = 0;
  for (const Variant& variant : backend_.Variants(*permitted.function->As<Function>(), device)) {
    const bool is_new = names.insert(variant.name).second;
    if (is_new != variant.uses_precision) Problems(permitted.name, result).Add("variant " + variant.name + " is marked wrongly");
    unchanged += is_new ? 0 : 1;
    if (variant.uses_precision) CheckVariant(permitted, device, variant, samples, result);
  }
  if (unchanged != usual.size()) Problems(permitted.name, result).Add("the permit changes the variants that do not use it");
}

CaseResult CaseChecker::Check(const ProgramCase& one) {
  CaseResult result;
  try {
    const Program program = one.make();
    const Partitions partitions = PartitionsOf(program, backend_, On(1));
    result.partitions = partitions.taken.size();
    if (partitions.taken.empty()) result.refusal = partitions.reason;
    std::vector<ReferenceRun> runs;
    for (uint64_t seed = 1; seed <= 2 && !partitions.taken.empty(); ++seed) runs.emplace_back(program.Get(), program.RandomInputs(seed));
    for (const Partition& partition : partitions.taken) {
      std::vector<Sample> samples;
      for (const ReferenceRun& run : runs) samples.push_back(MakeSample(run, partition));
      CheckPartition(partition, samples, 1, result);
      // An accelerator has no threads of the host's.
      if (On(2).kind == DeviceKind::kCpu) CheckPartition(partition, samples, 2, result);
    }
  } catch (const std::exception& error) {
    result.problems.push_back(one.name + ": " + error.what());
  }
  return result;
}

}  // namespace collage::conformance
