// Building the dataflow graph and the candidates of large functions, one thread: each under 2 s and 1 GiB at 10 000 operators, and
// at most 13 times what 1 000 operators take. Exits 1 where a bound is missed.
//
// A time is the fastest of several rounds. The sizes of a shape take turns, each round of each in a process of its own: whatever else
// the machine does meets all sizes alike, and growth is that of the work.

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/backends.h"
#include "bench/graphs.h"
#include "bench/table.h"
#include "collage/candidate/gather.h"

namespace collage {
namespace {

constexpr double kMostSeconds = 2;
constexpr double kMostMegabytes = 1024;
constexpr double kMostGrowth = 13;
constexpr int kRounds = 6;
constexpr size_t kRunsOfRound = 3;

struct Times {
  double graph;
  double candidates;
  double count;
  double megabytes;
};

Times Measure(const std::function<Expr(size_t)>& make, size_t operators) {
  const CaseUsage usage = RunApart([&] {
    const Expr function = make(operators);
    std::optional<DataflowGraph> graph;
    const double graph_seconds = FastestOf(
        kRunsOfRound, [&] { graph.emplace(function); }, [&] { graph.reset(); });
    const std::vector<SpecPointer> specs = BenchSpecs();
    std::vector<CandidatePartition> candidates;
    const double candidate_seconds = FastestOf(
        kRunsOfRound, [&] { candidates = AllCandidates(*graph, specs); }, [&] { candidates.clear(); });
    return std::vector<double>{graph_seconds, candidate_seconds, static_cast<double>(candidates.size())};
  });
  return {usage.values[0], usage.values[1], usage.values[2], usage.peak_megabytes};
}

/// The best of each size.
std::map<size_t, Times> MeasureInTurns(const std::function<Expr(size_t)>& make, const std::vector<size_t>& sizes) {
  std::map<size_t, Times> best;
  for (int round = 0; round < kRounds; ++round) {
    for (const size_t operators : sizes) {
      const Times times = Measure(make, operators);
      Times& kept = best.emplace(operators, times).first->second;
      kept.graph = std::min(kept.graph, times.graph);
      kept.candidates = std::min(kept.candidates, times.candidates);
      kept.megabytes = std::max(kept.megabytes, times.megabytes);
    }
  }
  return best;
}

}  // namespace
}  // namespace collage

int main() {
  using namespace collage;  // NOLINT(google-build-using-namespace)
  BoundTable table({"function", "operators", "graph", "candidates", "count", "peak memory", "growth of time"});
  struct Shape {
    std::string name;
    std::function<Expr(size_t)> make;
    std::vector<size_t> sizes;
  };
  for (const Shape& shape : {Shape{"chain", ConvolutionChain, {1000, 10000}}, Shape{"residual blocks", ResidualNetwork, {1000, 10000}},
                             Shape{"NASNet-like", NasnetLike, {1000, 2000, 10000}}}) {
    const std::map<size_t, Times> best = MeasureInTurns(shape.make, shape.sizes);
    const Times& smallest = best.at(shape.sizes.front());
    for (const auto& [operators, times] : best) {
      std::vector<std::string> row = {shape.name,
                                      std::to_string(operators),
                                      table.Bounded(times.graph, kMostSeconds, " s"),
                                      table.Bounded(times.candidates, kMostSeconds, " s"),
                                      std::to_string(static_cast<size_t>(times.count)),
                                      table.Bounded(times.megabytes, kMostMegabytes, " MiB")};
      if (operators == 10 * shape.sizes.front()) {
        const double growth = (times.graph + times.candidates) / (smallest.graph + smallest.candidates);
        row.push_back(table.Bounded(growth, kMostGrowth, "x"));
      }
      table.Row(row);
    }
  }
  return table.ExitCode();
}
