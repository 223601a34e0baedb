// Building the dataflow graph and the candidates of large functions, one thread: each under 2 s and 1 GiB at 10 000 operators, and
// at most 13 times what 1 000 operators take. Exits 1 where a bound is missed.

#include <functional>
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
        5, [&] { graph.emplace(function); }, [&] { graph.reset(); });
    const std::vector<SpecPointer> specs = BenchSpecs();
    std::vector<CandidatePartition> candidates;
    const double candidate_seconds = FastestOf(
        5, [&] { candidates = AllCandidates(*graph, specs); }, [&] { candidates.clear(); });
    return std::vector<double>{graph_seconds, candidate_seconds, static_cast<double>(candidates.size())};
  });
  return {usage.values[0], usage.values[1], usage.values[2], usage.peak_megabytes};
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
    std::optional<Times> smallest;
    for (const size_t operators : shape.sizes) {
      const Times times = Measure(shape.make, operators);
      if (!smallest) smallest = times;
      std::vector<std::string> row = {shape.name,
                                      std::to_string(operators),
                                      table.Bounded(times.graph, kMostSeconds, " s"),
                                      table.Bounded(times.candidates, kMostSeconds, " s"),
                                      std::to_string(static_cast<size_t>(times.count)),
                                      table.Bounded(times.megabytes, kMostMegabytes, " MiB")};
      if (operators == 10 * shape.sizes.front()) {
        const double growth = (times.graph + times.candidates) / (smallest->graph + smallest->candidates);
        row.push_back(table.Bounded(growth, kMostGrowth, "x"));
      }
      table.Row(row);
    }
  }
  return table.ExitCode();
}
