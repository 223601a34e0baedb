// The search alone, one thread: bench_search [MODEL.onnx ...]. On seeded prices with layouts, conversions and transitions: 1 000 operators
// under 100 ms (of a NASNet-like graph, under 200 ms), 10 000 under 2 s, 2 000 of a NASNet-like graph under 2 s, every optimum proven.
// Of each model, the candidates of all backends that are present, priced one by one as a lazy search asks: after the first search none
// takes 50 ms or more. Exits 1 where a bound is missed.

#include <algorithm>
#include <functional>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "bench/backends.h"
#include "bench/graphs.h"
#include "bench/model_problem.h"
#include "bench/search_problem.h"
#include "bench/table.h"
#include "collage/search/incremental.h"

namespace collage {
namespace {

constexpr size_t kMostPriced = 100;
constexpr double kMostSecondsAgain = 0.05;
constexpr uint64_t kSeed = 17;

/// Prices as a lazy search asks for them: of what the plan uses, the dearest.
class LazyPrices {
 public:
  explicit LazyPrices(const ModelProblem& model) : model_(model), problem_(model.problem) {
    ForEachVariant([&](size_t c, size_t v, Cost& cost) { cost = model_.bounds[c][v]; });
  }

  [[nodiscard]] const SearchProblem& problem() const { return problem_; }

  /// False when all of it is known.
  bool PriceDearest(const std::vector<SearchChoice>& choices) {
    const SearchChoice* dearest = nullptr;
    const auto cost = [&](const SearchChoice& choice) { return problem_.candidates[choice.candidate].variants[choice.variant].cost; };
    for (const SearchChoice& choice : choices) {
      if (known_.contains(model_.prices[choice.candidate][choice.variant])) continue;
      if (!dearest || cost(choice) > cost(*dearest)) dearest = &choice;
    }
    if (!dearest) return false;
    const size_t number = model_.prices[dearest->candidate][dearest->variant];
    known_.insert(number);
    ForEachVariant([&](size_t c, size_t v, Cost& price) {
      if (model_.prices[c][v] == number) price = model_.problem.candidates[c].variants[v].cost;
    });
    return true;
  }

 private:
  template <class Visit>
  void ForEachVariant(const Visit& visit) {
    for (size_t c = 0; c < problem_.candidates.size(); ++c) {
      for (size_t v = 0; v < problem_.candidates[c].variants.size(); ++v) visit(c, v, problem_.candidates[c].variants[v].cost);
    }
  }

  const ModelProblem& model_;
  SearchProblem problem_;
  std::set<size_t> known_;
};

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

/// Seconds of the first search, the slowest and the mean of the later ones, and the largest gap between plan and bound.
Status AddModel(const std::string& path, BoundTable& table) {
  const ModelProblem model = COLLAGE_TRY(ProblemOfModel(path, kSeed));
  LazyPrices prices(model);
  IncrementalSearch search;
  double first = 0;
  std::vector<double> later;
  double gap = 0;
  for (size_t round = 0; round <= kMostPriced; ++round) {
    SearchResult found;
    Status failure;
    const double seconds = SecondsOf([&] {
      Result<SearchResult> result = search.Search(prices.problem());
      if (result) found = std::move(*result);
      if (!result) failure = Fail(result.error());
    });
    COLLAGE_TRY_STATUS(failure);
    if (round == 0) first = seconds;
    if (round > 0) later.push_back(seconds);
    gap = std::max(gap, found.cost.ToSeconds() / found.lower_bound.ToSeconds() - 1);
    if (!prices.PriceDearest(found.choices)) break;
  }
  double mean = 0;
  for (const double seconds : later) mean += seconds / static_cast<double>(later.size());
  const double slowest = later.empty() ? 0 : *std::max_element(later.begin(), later.end());
  table.Row({path.substr(path.rfind('/') + 1), std::to_string(model.problem.node_count), std::to_string(model.problem.candidates.size()),
             std::to_string(first), table.Bounded(slowest, kMostSecondsAgain, " s"), std::to_string(mean), std::to_string(later.size()),
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
  BoundTable models({"model", "operators", "candidates", "first search (s)", "slowest later", "mean later (s)", "searches", "gap"});
  for (int i = 1; i < argc; ++i) {
    const Status added = AddModel(argv[i], models);
    if (!added) {
      std::cerr << argv[i] << ": " << added.error().message << "\n";
      return 2;
    }
  }
  return std::max(functions.ExitCode(), models.ExitCode());
}
