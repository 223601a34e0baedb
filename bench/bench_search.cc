// The search alone, one thread: bench_search [MODEL.onnx ...]. On seeded prices with layouts, conversions and transitions: 1 000 operators
// under 100 ms (of a NASNet-like graph, under 200 ms), 10 000 under 2 s, 2 000 of a NASNet-like graph under 2 s, every optimum proven.
// Of each model, a decision about the candidates of all backends that are present, with simulated kernels: after the first search none
// takes 50 ms or more. Exits 1 where a bound is missed.

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <iostream>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "bench/backends.h"
#include "bench/graphs.h"
#include "bench/model_problem.h"
#include "bench/search_problem.h"
#include "bench/simulated_kernels.h"
#include "bench/table.h"
#include "collage/cost/statistics.h"
#include "collage/search/cover_graph.h"
#include "collage/search/shortest_path.h"

namespace collage {
namespace {

constexpr size_t kMostSearches = 2000;
constexpr double kMostSecondsAgain = 0.05;
constexpr uint64_t kSeed = 17;
constexpr size_t kMostCovered = 1'000'000;  // that are counted

std::string Milliseconds(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", 1e3 * seconds);
  return text.data();
}

void AddFunctions(BoundTable& table) {
  struct Case {
    std::string name;
    std::function<Expr(size_t)> make;
    size_t operators;
    double most_seconds;
  };
  for (const Case& one : {Case{"chain", ConvolutionChain, 1000, 0.1}, Case{"residual blocks", ResidualNetwork, 1000, 0.1},
                          Case{"NASNet-like", NasnetLike, 1000, 0.2}, Case{"chain", ConvolutionChain, 10000, 2},
                          Case{"residual blocks", ResidualNetwork, 10000, 2}, Case{"NASNet-like", NasnetLike, 2000, 2}}) {
    const DataflowGraph graph(one.make(one.operators));
    const SearchProblem problem = RandomlyPriced(graph, AllCandidates(graph, BenchSpecs()), 17);
    const CaseUsage usage = RunApart([&] {
      SearchResult result;
      const double seconds = FastestOf(3, [&] { result = SearchShortestPath(problem).value(); });
      return std::vector<double>{seconds, static_cast<double>(result.states_expanded),
                                 result.cost.ToSeconds() / result.lower_bound.ToSeconds() - 1};
    });
    table.Row({one.name, std::to_string(one.operators), std::to_string(problem.candidates.size()),
               table.Bounded(usage.values[0], one.most_seconds, " s"), std::to_string(static_cast<size_t>(usage.values[1])),
               table.Bounded(100 * usage.values[2], 0, " %")});
  }
}

/// Decides about a model whose kernels are simulated, until that is settled or so many searches have found a cover.
Status AddModel(const std::string& path, BoundTable& table) {
  const ModelProblem model = COLLAGE_TRY(ProblemOfModel(path, kSeed));
  std::vector<double> seconds;
  double gap = 0;
  size_t unproven = 0;
  SimulatedKernels kernels(model, kSeed, [&] { return seconds.size() >= kMostSearches; });
  std::vector<Evidence> evidence = kernels.FirstEvidence();
  DecideOptions options;
  options.allowed = model.allowed;
  options.searched = [&](const Result<SearchResult>& found, bool is_exact, double took) {
    if (!found) return;
    seconds.push_back(took);
    if (!is_exact) return;
    unproven += found->is_proven ? 0 : 1;
    gap = std::max(gap, found->cost.ToSeconds() / found->lower_bound.ToSeconds() - 1);
  };
  const Decision decision = COLLAGE_TRY(Decide(model.arms, evidence, kernels, options));
  const double first = seconds.front();
  const std::vector<double> later(seconds.begin() + 1, seconds.end());
  const double mean = std::accumulate(later.begin(), later.end(), 0.0) / static_cast<double>(later.size());
  const std::optional<CoverGraph> covers = CoverGraph::Build(model.arms.problem, kMostCovered);
  table.Row({path.substr(path.rfind('/') + 1), std::to_string(model.arms.problem.node_count),
             std::to_string(model.arms.problem.candidates.size()), covers ? std::to_string(covers->size()) : "more than counted",
             std::to_string(seconds.size()), Milliseconds(first), Milliseconds(mean), Milliseconds(Percentile(later, 0.95)),
             table.Bounded(1e3 * *std::max_element(later.begin(), later.end()), 1e3 * kMostSecondsAgain, " ms"), std::to_string(unproven),
             table.Bounded(100 * gap, 0, " %")});
  return {};
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) {
  using namespace collage;  // NOLINT(google-build-using-namespace)
  BoundTable functions({"function", "operators", "candidates", "seconds", "states", "gap"});
  AddFunctions(functions);
  if (argc == 1) return functions.ExitCode();
  BoundTable models(
      {"model", "operators", "candidates", "covered sets", "searches", "first (ms)", "mean later", "95 %", "slowest", "unproven", "gap"});
  for (int i = 1; i < argc; ++i) {
    const Status added = AddModel(argv[i], models);
    if (!added) {
      std::cerr << argv[i] << ": " << added.error().message << "\n";
      return 2;
    }
  }
  return std::max(functions.ExitCode(), models.ExitCode());
}
