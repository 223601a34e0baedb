#include "tests/decide/simulated_machine.h"

#include <cmath>
#include <set>

#include "collage/search/shortest_path.h"

namespace collage {

SimulatedMachine::SimulatedMachine(SearchProblem problem, std::mt19937_64& random, const Nature& nature)
    : true_problem_(std::move(problem)), random_(random), nature_(nature) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  phase_ = uniform(random_);
  arms_.problem = true_problem_;
  std::vector<double> flattery;  // by backend
  for (size_t backend = 0; backend <= true_problem_.backend_count; ++backend) flattery.push_back(nature_.flattery * uniform(random_));
  std::vector<KernelFacts> facts;
  for (SearchCandidate& candidate : true_problem_.candidates) {
    std::vector<size_t>& kernels = arms_.kernel_of.emplace_back();
    for (SearchVariant& variant : candidate.variants) {
      kernels.push_back(times_.size());
      Times times;
      times.is_invalid = !variant.cost.IsKnown();
      times.in_program = times.is_invalid ? 1e-4 : variant.cost.ToSeconds();
      times.alone = times.in_program / std::exp(flattery[candidate.backend] + 0.1 * normal(random_));
      times_.push_back(times);
      KernelFacts fact;
      fact.backend = candidate.backend;
      // Below it in truth, as every kernel is.
      fact.roofline = Cost::Seconds(std::min(times.in_program, times.alone) * (0.05 + 0.5 * uniform(random_)));
      candidate.inside.ForEach([&](size_t node) { fact.heavy.push_back(node); });
      fact.variant = variant.output_layouts.empty() ? 0 : variant.output_layouts.front() * 2;
      facts.push_back(std::move(fact));
    }
  }
  AddConversions(facts);
  arms_.kernels = KernelRelations(std::move(facts));
}

void SimulatedMachine::AddConversions(std::vector<KernelFacts>& facts) {
  first_conversion_ = times_.size();
  const size_t layouts = true_problem_.layout_count;
  std::normal_distribution<double> normal;
  for (size_t tensor = 0; tensor < true_problem_.tensors.size(); ++tensor) {
    for (size_t pair = 0; pair < layouts * layouts; ++pair) {
      Times times;
      times.in_program = true_problem_.conversion(tensor, pair / layouts, pair % layouts).ToSeconds();
      times.alone = times.in_program / std::exp(nature_.flattery / 2 + 0.1 * normal(random_));
      times_.push_back(times);
      KernelFacts fact;
      fact.backend = true_problem_.backend_count + 1;
      facts.push_back(fact);
    }
  }
  arms_.conversion_kernel = [layouts, first = first_conversion_](size_t tensor, size_t from, size_t to) {
    return from == to ? Arms::kNoKernel : first + (tensor * layouts + from) * layouts + to;
  };
}

std::vector<Evidence> SimulatedMachine::NoEvidence() {
  std::vector<Evidence> evidence(times_.size());
  for (size_t kernel = first_conversion_; kernel < times_.size(); ++kernel) {
    for (int i = 0; i < 9; ++i) evidence[kernel].alone.push_back(AloneRow(kernel));
  }
  return evidence;
}

Row SimulatedMachine::AloneRow(size_t kernel) {
  constexpr double kAnchor = 50e-6;
  constexpr double kTick = 1e-9;
  return {std::max(kTick, Sample(times_[kernel].alone)), Sample(kAnchor)};
}

Cost SimulatedMachine::Optimum() const { return SearchShortestPath(true_problem_).value().cost; }

double SimulatedMachine::Speed() const {
  constexpr double kPeriod = 45;  // seconds
  const double wave = 0.5 + 0.5 * std::sin(2 * std::acos(-1.0) * (Clock::SecondsSince(start_) / kPeriod + phase_));
  return std::pow(nature_.most_drift, wave);
}

double SimulatedMachine::Sample(double seconds) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  double sample = seconds * Speed() * std::exp(nature_.wavering * std::abs(normal(random_)));
  if (uniform(random_) < nature_.bursts) sample *= 1 + 10 * uniform(random_);
  SimulatedClock::Pass(sample);
  return sample;
}

double SimulatedMachine::MedianOf(int samples, double seconds) {
  std::vector<double> all;
  for (int i = 0; i < samples; ++i) all.push_back(Sample(seconds));
  return Median(std::move(all));
}

Result<Measurer::Found> SimulatedMachine::MeasureEach(std::span<const size_t> kernels) {
  Found found;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (i % nature_.at_once == 0) {
      ++waits_;
      SimulatedClock::Pass(0.05);
    }
    found.push_back(COLLAGE_TRY(MeasureAlone(kernels[i])).front());
  }
  return found;
}

Result<Measurer::Found> SimulatedMachine::MeasureAlone(size_t kernel) {
  ++alone_;
  Evidence evidence;
  if (times_[kernel].is_invalid) {
    evidence.invalid_reason = "is wrong";
    return Found{{kernel, evidence}};
  }
  for (int i = 0; i < 9; ++i) evidence.alone.push_back(AloneRow(kernel));
  return Found{{kernel, evidence}};
}

Result<Measurer::Found> SimulatedMachine::MeasureInProgram(const std::vector<SearchChoice>& cover) {
  ++programs_;
  SimulatedClock::Pass(0.5);
  constexpr int kRuns = 9;
  if (anchor_.empty()) {
    anchor_ = cover;
    for (const SearchChoice& choice : cover) anchor_seconds_ += times_[arms_.kernel_of[choice.candidate][choice.variant]].in_program;
  }
  const double anchor = MedianOf(kRuns, anchor_seconds_);
  std::normal_distribution<double> normal;
  std::set<size_t> kernels;
  for (const SearchChoice& choice : cover) kernels.insert(arms_.kernel_of[choice.candidate][choice.variant]);
  for (const ConversionMade& made : ConversionsOf(true_problem_, cover))
    kernels.insert(arms_.conversion_kernel(made.tensor, made.from, made.to));
  Found found;
  for (const size_t kernel : kernels) {
    Evidence evidence;
    const double round = std::exp(nature_.round_wavering * normal(random_));
    evidence.in_program.push_back({{round * MedianOf(kRuns, times_[kernel].in_program) + 1e-9, anchor}, 1, programs_});
    found.emplace_back(kernel, std::move(evidence));
  }
  return found;
}

}  // namespace collage
