#include "collage/search/evolutionary.h"

#include <algorithm>
#include <map>
#include <random>

#include "collage/search/shortest_path.h"

namespace collage {
namespace {

using Genes = std::vector<size_t>;  // zero stays; k goes to the k-th graph backend
using Plan = std::vector<SearchChoice>;

class Evolution {
 public:
  Evolution(const SearchProblem& problem, const Plan& start, const EvolutionOptions& options)
      : problem_(problem), start_(start), options_(options), random_(options.seed) {
    std::vector<size_t> number(problem.backend_count, 0);
    for (size_t b = 0; b < problem.backend_count; ++b) {
      if (b < options.is_graph_backend.size() && options.is_graph_backend[b]) number[b] = ++graph_backends_;
    }
    of_backend_.resize(graph_backends_ + 1);
    std::vector<std::pair<size_t, size_t>> by_size;
    for (size_t c = 0; c < problem.candidates.size(); ++c) {
      const SearchCandidate& candidate = problem.candidates[c];
      const bool usable = std::any_of(candidate.variants.begin(), candidate.variants.end(), [](const auto& v) { return v.cost.IsKnown(); });
      if (usable && !candidate.inside.Empty() && candidate.is_partition) by_size.emplace_back(candidate.inside.Count(), c);
    }
    std::sort(by_size.begin(), by_size.end(),
              [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
    for (const auto& [size, c] : by_size) of_backend_[number[problem.candidates[c].backend]].push_back(c);
  }

  Result<EvolutionResult> Run(const Progress& progress) {
    EvolutionResult result;
    result.start_cost = Measure(start_);
    if (!result.start_cost.IsKnown()) return Fail("the plan that evolution would start from cannot be measured");
    result.choices = start_;
    result.cost = result.start_cost;
    std::vector<Individual> population = FirstPopulation(result);
    for (size_t generation = 0; generation < options_.generations && graph_backends_ > 0 && !progress.ShouldStop(); ++generation) {
      population = NextGeneration(population, result, progress);
      progress.Report({"graph-level search", generation + 1, options_.generations, ""});
    }
    result.measured = measured_.size();
    return result;
  }

 private:
  struct Individual {
    Genes genes;
    Cost cost;
  };

  size_t Pick(size_t count) { return static_cast<size_t>(random_() % count); }
  bool Chance(double probability) { return static_cast<double>(random_() >> 11) * 0x1p-53 < probability; }

  std::vector<Individual> FirstPopulation(EvolutionResult& best) {
    std::vector<Individual> population;
    for (size_t backend = 0; backend <= graph_backends_; ++backend) population.push_back(Born(Genes(start_.size(), backend), best));
    while (graph_backends_ > 0 && population.size() < options_.population) {
      Genes genes(start_.size());
      for (size_t& gene : genes) gene = Pick(graph_backends_ + 1);
      population.push_back(Born(std::move(genes), best));
    }
    return population;
  }

  std::vector<Individual> NextGeneration(const std::vector<Individual>& parents, EvolutionResult& best, const Progress& progress) {
    const auto cheaper = [](const Individual& a, const Individual& b) { return a.cost < b.cost; };
    std::vector<Individual> children = {*std::min_element(parents.begin(), parents.end(), cheaper)};
    while (children.size() < parents.size() && !progress.ShouldStop()) {
      Genes genes = Tournament(parents).genes;
      if (Chance(options_.crossover_probability)) Cross(genes, Tournament(parents).genes);
      if (Chance(options_.mutation_probability)) Mutate(genes);
      children.push_back(Born(std::move(genes), best));
    }
    return children;
  }

  const Individual& Tournament(const std::vector<Individual>& population) {
    const Individual* winner = &population[Pick(population.size())];
    for (int i = 1; i < 3; ++i) {
      const Individual& rival = population[Pick(population.size())];
      if (rival.cost < winner->cost) winner = &rival;
    }
    return *winner;
  }

  void Cross(Genes& genes, const Genes& other) {
    size_t begin = Pick(genes.size() + 1);
    size_t end = Pick(genes.size() + 1);
    if (begin > end) std::swap(begin, end);
    std::copy(other.begin() + static_cast<std::ptrdiff_t>(begin), other.begin() + static_cast<std::ptrdiff_t>(end),
              genes.begin() + static_cast<std::ptrdiff_t>(begin));
  }

  void Mutate(Genes& genes) {
    for (size_t& gene : genes) {
      if (Chance(0.1)) gene = Pick(graph_backends_ + 1);
    }
  }

  Individual Born(Genes genes, EvolutionResult& best) {
    const Plan plan = PlanOf(genes);
    const Cost cost = plan.empty() ? Cost::Invalid() : Measure(plan);
    if (cost < best.cost) {
      best.cost = cost;
      best.choices = plan;
    }
    return {std::move(genes), cost};
  }

  /// Empty when what the graph backends take leaves no cover.
  [[nodiscard]] Plan PlanOf(const Genes& genes) const {
    std::vector<size_t> assigned(problem_.node_count, 0);
    for (size_t i = 0; i < genes.size(); ++i)
      problem_.candidates[start_[i].candidate].inside.ForEach([&](size_t node) { assigned[node] = genes[i]; });
    std::vector<bool> taken(problem_.node_count, false);
    std::vector<bool> forbidden(problem_.candidates.size(), true);
    const auto all = [](const IndexSet& set, auto&& holds) {
      for (size_t node = set.First(); node != IndexSet::npos; node = set.NextFrom(node + 1)) {
        if (!holds(node)) return false;
      }
      return true;
    };
    for (size_t backend = 1; backend <= graph_backends_; ++backend) {
      for (const size_t c : of_backend_[backend]) {
        const IndexSet& inside = problem_.candidates[c].inside;
        if (!all(inside, [&](size_t node) { return assigned[node] == backend && !taken[node]; })) continue;
        inside.ForEach([&](size_t node) { taken[node] = true; });
        forbidden[c] = false;
      }
    }
    std::vector<bool> is_kept(problem_.node_count, false);
    for (const SearchChoice& choice : start_) {
      const IndexSet& inside = problem_.candidates[choice.candidate].inside;
      if (!all(inside, [&](size_t node) { return !taken[node]; })) continue;
      forbidden[choice.candidate] = false;
      inside.ForEach([&](size_t node) { is_kept[node] = true; });
    }
    // What is left of partitions of which a graph backend took a part is covered anew.
    for (size_t c = 0; c < problem_.candidates.size(); ++c) {
      if (problem_.candidates[c].inside.Empty()) continue;
      if (all(problem_.candidates[c].inside, [&](size_t node) { return !taken[node] && !is_kept[node]; })) forbidden[c] = false;
    }
    Result<SearchResult> plan = SearchShortestPath(problem_, forbidden);
    return plan ? std::move(plan->choices) : Plan();
  }

  Cost Measure(const Plan& plan) {
    const auto known = measured_.find(plan);
    if (known != measured_.end()) return known->second;
    return measured_[plan] = options_.measure ? options_.measure(plan) : PriceOfCover(problem_, plan);
  }

  const SearchProblem& problem_;
  const Plan& start_;
  const EvolutionOptions& options_;
  std::mt19937_64 random_;
  size_t graph_backends_ = 0;
  std::vector<std::vector<size_t>> of_backend_;  // candidates of each graph backend, the largest first
  std::map<Plan, Cost> measured_;
};

}  // namespace

Result<EvolutionResult> SearchByEvolution(const SearchProblem& problem, const std::vector<SearchChoice>& start,
                                          const EvolutionOptions& options, const Progress& progress) {
  if (start.empty()) return Fail("evolution needs a plan to start from");
  return Evolution(problem, start, options).Run(progress);
}

}  // namespace collage
