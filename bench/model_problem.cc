#include "bench/model_problem.h"

#include <map>

#include "collage/driver/candidates.h"
#include "collage/driver/constraints.h"
#include "collage/driver/placement.h"
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
// Bounds of kernels that are not measured come from what no device exceeds.
constexpr double kBoundOfPrice = 0.25;

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

class Pricing {
 public:
  Pricing(const std::vector<PlacementTarget>& targets, const Device& device, uint64_t seed)
      : targets_(targets), device_(device), seed_(seed) {}

  /// Gives the candidate its variants, and says what is known of them.
  void Price(PricedCandidate& candidate) {
    std::vector<Cost>& bounds = bounds_.emplace_back();
    std::vector<size_t>& numbers = numbers_.emplace_back();
    if (!candidate.is_partition) {
      for (const PricedVariant& variant : candidate.variants) Add(0, variant.variant.name, variant.cost, bounds, numbers);
      return;
    }
    const PlacementTarget& target = targets_[candidate.backend];
    const Function& function = *candidate.extracted.function->As<Function>();
    const uint64_t hash = HashCombine(StructuralHash(candidate.extracted.function, ForPricing()), candidate.backend);
    const double seconds = SecondsOfWork(function);
    candidate.variants.clear();
    for (Variant& variant : target.backend->Variants(function, device_)) {
      // The reference runs one element at a time.
      const double slowness = target.is_fallback ? 30 : Uniform(seed_, HashCombine(hash, HashBytes(variant.name)), 1, 2);
      Add(hash, variant.name, Cost::Seconds(seconds * kBoundOfPrice), bounds, numbers);
      candidate.variants.push_back({std::move(variant), Cost::Seconds(seconds * slowness), {}, {}});
    }
  }

  std::vector<std::vector<Cost>> TakeBounds() { return std::move(bounds_); }
  std::vector<std::vector<size_t>> TakeNumbers() { return std::move(numbers_); }

 private:
  void Add(uint64_t hash, const std::string& variant, Cost bound, std::vector<Cost>& bounds, std::vector<size_t>& numbers) {
    bounds.push_back(bound);
    numbers.push_back(number_of_.try_emplace({hash, variant}, number_of_.size()).first->second);
  }

  const std::vector<PlacementTarget>& targets_;
  const Device& device_;
  uint64_t seed_;
  std::vector<std::vector<Cost>> bounds_;
  std::vector<std::vector<size_t>> numbers_;
  std::map<std::pair<uint64_t, std::string>, size_t> number_of_;
};

}  // namespace

Result<ModelProblem> ProblemOfModel(const std::filesystem::path& path, uint64_t seed) {
  const Device device{DeviceKind::kCpu, 0, AvailableThreads()};
  OnnxModel model = COLLAGE_TRY(ReadOnnxFile(path, {}));
  const IRModule module = COLLAGE_TRY(RunPasses(std::move(model.module), SafeGlobalPasses()));
  const std::vector<PlacementTarget> targets = COLLAGE_TRY(ResolveTargets({}, device));
  std::vector<std::string> names;
  for (const PlacementTarget& target : targets) names.emplace_back(target.backend->Name());
  const DataflowGraph graph(module.MainExpr());
  const Constraints constraints = COLLAGE_TRY(Constraints::Resolve(graph, names, {}));
  FoundCandidates found = COLLAGE_TRY(FindCandidates(graph, targets, constraints));
  Pricing pricing(targets, device, seed);
  for (PricedCandidate& candidate : found.candidates) pricing.Price(candidate);
  FunctionProblem built = COLLAGE_TRY(
      BuildProblem(graph, found.candidates, targets.size(), [seed](const TensorType& type, const Layout& from, const Layout& to) {
        if (from == to) return Cost();
        const uint64_t what = HashCombine(HashBytes(from.ToString()), HashBytes(to.ToString() + ToString(type)));
        const double seconds = kCallSeconds + 2 * static_cast<double>(type.ByteCount()) / kBytesPerSecond;
        return Cost::Seconds(seconds * Uniform(seed, what, 1, 2));
      }));
  built.problem.transition.assign(targets.size(), std::vector<Cost>(targets.size()));
  for (size_t a = 0; a < targets.size(); ++a) {
    for (size_t b = 0; b < targets.size(); ++b) {
      if (a != b) built.problem.transition[a][b] = Cost::Microseconds(Uniform(seed, a * 97 + b, 0.5, 3));
    }
  }
  return ModelProblem{std::move(built.problem), pricing.TakeBounds(), pricing.TakeNumbers()};
}

}  // namespace collage
