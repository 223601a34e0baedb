#include "bench/simulated_kernels.h"

#include <chrono>
#include <cmath>
#include <set>
#include <thread>

namespace collage {
namespace {

// Standard deviations of logarithms, as measured here: of the median of one series alone, and of one kernel's median in one round of a
// program.
constexpr double kAloneWavering = 0.02;
constexpr double kRoundWavering = 0.02;
constexpr double kMostFlattery = 0.3;
constexpr int kRowsAlone = 9;
constexpr double kAnchorSeconds = 50e-6;
// That measuring takes longer than a good search makes a decision ask anew after each kernel.
constexpr std::chrono::milliseconds kTakenAlone{20};

}  // namespace

SimulatedKernels::SimulatedKernels(const ModelProblem& model, uint64_t seed, std::function<bool()> is_over)
    : model_(model), random_(seed), is_over_(std::move(is_over)) {
  std::uniform_real_distribution<double> flattery(0, kMostFlattery);
  for (size_t backend = 0; backend <= model.arms.problem.backend_count; ++backend) flattery_.push_back(flattery(random_));
}

double SimulatedKernels::Wavering(double deviation) { return std::exp(deviation * std::normal_distribution<double>()(random_)); }

Evidence SimulatedKernels::Alone(size_t kernel) {
  const double seconds =
      model_.costs[kernel].ToSeconds() / std::exp(flattery_[model_.arms.kernels.kernels()[kernel].backend]) * Wavering(kAloneWavering);
  Evidence evidence;
  for (int i = 0; i < kRowsAlone; ++i)
    evidence.alone.push_back({seconds * Wavering(kAloneWavering), kAnchorSeconds * Wavering(kAloneWavering)});
  return evidence;
}

std::vector<Evidence> SimulatedKernels::FirstEvidence() {
  const std::vector<KernelFacts>& facts = model_.arms.kernels.kernels();
  std::vector<Evidence> evidence(facts.size());
  for (size_t kernel = 0; kernel < facts.size(); ++kernel) {
    if (facts[kernel].backend == model_.arms.problem.backend_count) evidence[kernel] = Alone(kernel);
  }
  return evidence;
}

Result<Measurer::Found> SimulatedKernels::MeasureAlone(size_t kernel) {
  std::this_thread::sleep_for(kTakenAlone);
  return Found{{kernel, Alone(kernel)}};
}

Result<Measurer::Found> SimulatedKernels::MeasureInProgram(const std::vector<SearchChoice>& cover) {
  ++rounds_;
  std::set<size_t> kernels;
  for (const SearchChoice& choice : cover) kernels.insert(model_.arms.kernel_of[choice.candidate][choice.variant]);
  for (const ConversionMade& made : ConversionsOf(model_.arms.problem, cover))
    kernels.insert(model_.arms.conversion_kernel(made.tensor, made.from, made.to));
  kernels.erase(Arms::kNoKernel);
  const double anchor = kAnchorSeconds * Wavering(kRoundWavering);
  Found found;
  for (const size_t kernel : kernels) {
    Evidence evidence;
    evidence.in_program.push_back({{model_.costs[kernel].ToSeconds() * Wavering(kRoundWavering), anchor}, 1, rounds_});
    found.emplace_back(kernel, std::move(evidence));
  }
  return found;
}

}  // namespace collage
