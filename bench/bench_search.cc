// The search alone, one thread, on seeded prices with layouts, conversions and transitions: 1 000 operators under 100 ms (of a
// NASNet-like graph, under 200 ms), 10 000 under 2 s, 2 000 of a NASNet-like graph under 2 s, every optimum proven. Exits 1 where a bound
// is missed.

#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "bench/backends.h"
#include "bench/graphs.h"
#include "bench/search_problem.h"
#include "bench/table.h"
#include "collage/search/shortest_path.h"

int main() {
  using namespace collage;  // NOLINT(google-build-using-namespace)
  struct Case {
    std::string name;
    std::function<Expr(size_t)> make;
    size_t operators;
    double most_seconds;
  };
  BoundTable table({"function", "operators", "candidates", "seconds", "states", "gap"});
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
  return table.ExitCode();
}
