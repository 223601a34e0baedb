#include "bench/model_problem.h"

#include <memory>
#include <unordered_map>

#include "collage/driver/candidates.h"
#include "collage/driver/constraints.h"
#include "collage/driver/kernel_work.h"
#include "collage/driver/placement.h"
#include "collage/form/form.h"
#include "collage/ir/op_sequence.h"
#include "collage/ir/structural.h"
#include "collage/onnx/reader.h"
#include "collage/pricing/problem.h"
#include "collage/support/hash.h"
#include "collage/transform/pass.h"

namespace collage {
namespace {

// Two cores of a small cloud machine: what a good convolution reaches, and what streams from memory.
constexpr double kFlopsPerSecond = 100e9;
constexpr double kBytesPerSecond = 10e9;
constexpr double kCallSeconds = 1e-6;
// The reference runs one element at a time.
constexpr double kSlownessOfFallback = 30;

double Uniform(uint64_t seed, uint64_t what, double low, double high) {
  return low + (high - low) * static_cast<double>(HashCombine(seed, what) >> 11) * 0x1p-53;
}

double SecondsOfWork(const Function& function) {
  const Result<OpSequence> sequence = ToOpSequence(function);
  if (!sequence) return 1;
  double flops = 0;
  double bytes = 0;
  for (const OpSequence::Step& step : sequence->steps) flops += step.op->work(step.argument_types, step.result_type, step.attributes).flops;
  for (const size_t value : sequence->parameters) bytes += static_cast<double>(sequence->values[value].type.ByteCount());
  for (const size_t value : sequence->results) bytes += static_cast<double>(sequence->values[value].type.ByteCount());
  return kCallSeconds + flops / kFlopsPerSecond + bytes / kBytesPerSecond;
}

/// Numbers kernels, and says what is known of them and what they truly take.
class Pricing {
 public:
  Pricing(const std::vector<PlacementTarget>& targets, const Device& device, uint64_t seed)
      : targets_(targets), device_(device), seed_(seed) {}

  /// Gives the candidate its variants.
  void Price(PricedCandidate& candidate) {
    std::vector<size_t>& kernels = kernel_of_.emplace_back();
    if (!candidate.is_partition) {
      kernels.assign(candidate.variants.size(), Arms::kNoKernel);
      return;
    }
    const PlacementTarget& target = targets_[candidate.backend];
    const Function& function = *candidate.extracted.function->As<Function>();
    const uint64_t hash = HashCombine(StructuralHash(candidate.extracted.function, ForPricing()), candidate.backend);
    const double seconds = SecondsOfWork(function);
    KernelFacts facts = WorkOf(function, device_);
    facts.backend = candidate.backend;
    candidate.variants.clear();
    for (Variant& variant : target.backend->Variants(function, device_)) {
      const uint64_t name = HashBytes(variant.name);
      facts.variant = name;
      const double slowness = target.is_fallback ? kSlownessOfFallback : Uniform(seed_, HashCombine(hash, name), 1, 2);
      kernels.push_back(NumberOf(HashCombine(hash, name), facts, seconds * slowness));
      candidate.variants.push_back({std::move(variant)});
    }
  }

  size_t Conversion(const TensorType& type, const Layout& from, const Layout& to) {
    const uint64_t what = HashCombine(HashBytes(from.ToString()), HashBytes(to.ToString() + ToString(type)));
    KernelFacts facts;
    facts.backend = targets_.size();
    facts.variant = what;
    facts.bytes = 2 * static_cast<double>(type.ByteCount());
    return NumberOf(what, facts, (kCallSeconds + facts.bytes / kBytesPerSecond) * Uniform(seed_, what, 1, 2));
  }

  void Finish(ModelProblem& model) {
    model.arms.kernel_of = std::move(kernel_of_);
    model.arms.kernels = KernelRelations(std::move(facts_));
    model.costs = std::move(costs_);
  }

 private:
  size_t NumberOf(uint64_t what, const KernelFacts& facts, double seconds) {
    const auto [at, is_new] = number_of_.try_emplace(what, costs_.size());
    if (is_new) {
      facts_.push_back(facts);
      costs_.push_back(Cost::Seconds(seconds));
    }
    return at->second;
  }

  const std::vector<PlacementTarget>& targets_;
  const Device& device_;
  uint64_t seed_;
  std::vector<std::vector<size_t>> kernel_of_;
  std::vector<KernelFacts> facts_;
  std::vector<Cost> costs_;
  std::unordered_map<uint64_t, size_t> number_of_;
};

/// Numbers the conversion of every tensor from what some candidate makes of it to what another wants.
void AddConversions(const FunctionProblem& built, Pricing& pricing, Arms& arms) {
  const SearchProblem& problem = built.problem;
  const size_t layouts = problem.layout_count;
  std::vector<bool> made(problem.tensors.size() * layouts);
  std::vector<bool> wanted = made;
  for (size_t t = 0; t < problem.tensors.size(); ++t) made[t * layouts] = wanted[t * layouts] = true;
  for (const SearchCandidate& candidate : problem.candidates) {
    for (const SearchVariant& variant : candidate.variants) {
      for (size_t i = 0; i < candidate.outputs.size(); ++i) made[candidate.outputs[i] * layouts + variant.output_layouts[i]] = true;
      for (size_t i = 0; i < candidate.inputs.size(); ++i) wanted[candidate.inputs[i] * layouts + variant.input_layouts[i]] = true;
    }
  }
  auto table = std::make_shared<std::vector<size_t>>(problem.tensors.size() * layouts * layouts, Arms::kNoKernel);
  for (size_t at = 0; at < made.size(); ++at) {
    const size_t t = at / layouts;
    for (size_t to = 0; to < layouts; ++to) {
      if (at % layouts == to || !made[at] || !wanted[t * layouts + to]) continue;
      (*table)[at * layouts + to] = pricing.Conversion(built.tensor_types[t], built.layouts[at % layouts], built.layouts[to]);
    }
  }
  arms.conversion_kernel = [table, layouts](size_t tensor, size_t from, size_t to) {
    return (*table)[(tensor * layouts + from) * layouts + to];
  };
}

/// All candidates but the fallback's for what another backend covers.
std::vector<bool> Competing(const SearchProblem& problem, const std::vector<PlacementTarget>& targets) {
  const auto is_fallback = [&](const SearchCandidate& one) { return one.is_partition && targets[one.backend].is_fallback; };
  IndexSet covered;
  for (const SearchCandidate& candidate : problem.candidates) {
    if (!is_fallback(candidate) && !candidate.variants.empty()) covered |= candidate.inside;
  }
  std::vector<bool> competing;
  for (const SearchCandidate& candidate : problem.candidates)
    competing.push_back(!is_fallback(candidate) || !candidate.inside.Intersects(covered));
  return competing;
}

}  // namespace

Result<ModelProblem> ProblemOfModel(const std::filesystem::path& path, uint64_t seed) {
  const Device device{DeviceKind::kCpu, 0, AvailableThreads()};
  OnnxModel read = COLLAGE_TRY(ReadOnnxFile(path, {}));
  const IRModule module = COLLAGE_TRY(RunPasses(std::move(read.module), SafeGlobalPasses()));
  const std::vector<PlacementTarget> targets = COLLAGE_TRY(ResolveTargets({}, device));
  std::vector<std::string> names;
  for (const PlacementTarget& target : targets) names.emplace_back(target.backend->Name());
  Placement placement;
  placement.graph = std::make_shared<const DataflowGraph>(module.MainExpr());
  placement.targets = targets;
  placement.devices = {device};
  const DataflowGraph& graph = *placement.graph;
  placement.constraints = std::make_shared<const Constraints>(COLLAGE_TRY(Constraints::Resolve(graph, names, {})));
  std::vector<PricedCandidate> candidates = COLLAGE_TRY(FindCandidates(placement)).candidates;
  placement.formed = COLLAGE_TRY(FindForms(placement.graph, FormRules()));
  for (PricedCandidate& candidate : COLLAGE_TRY(FindFormCandidates(placement))) candidates.push_back(std::move(candidate));
  Pricing pricing(targets, device, seed);
  for (PricedCandidate& candidate : candidates) pricing.Price(candidate);
  FunctionProblem built = COLLAGE_TRY(BuildProblem(placement.formed, candidates, targets.size(), {}));
  built.problem.transition.assign(targets.size(), std::vector<Cost>(targets.size()));
  for (size_t a = 0; a < targets.size(); ++a) {
    for (size_t b = 0; b < targets.size(); ++b) {
      if (a != b) built.problem.transition[a][b] = Cost::Microseconds(Uniform(seed, a * 97 + b, 0.5, 3));
    }
  }
  ModelProblem model;
  AddConversions(built, pricing, model.arms);
  pricing.Finish(model);
  model.allowed = Competing(built.problem, targets);
  model.arms.problem = std::move(built.problem);
  return model;
}

}  // namespace collage
