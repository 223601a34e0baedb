// Building the dataflow graph and the candidates of large functions, one thread: each under 2 s and 1 GiB at 10 000 operators, and
// at most 13 times what 1 000 operators take. Planning the devices of a program: under 0.2 s at 10 000 operators, and 100 000 take at most
// 20 times as long: caches hold the former alone. Exits 1 where a bound is missed.
//
// The sizes of a shape take turns, each size in a process of its own and each turn with as many operators: a tenth of a second in which
// whatever else the machine does meets all sizes alike. (The fastest run of many would not do: a machine that is disturbed every few
// milliseconds leaves a short run alone at times, and never a long one.) A turn gives the mean of its runs and the growth between the
// sizes of that turn; the table gives the medians over the turns.

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
#include "collage/device/plan_devices.h"
#include "collage/op/table.h"

namespace collage {
namespace {

constexpr double kMostSeconds = 2;
constexpr double kMostMegabytes = 1024;
constexpr double kMostGrowth = 13;
constexpr size_t kTurns = 31;
constexpr size_t kOperatorsOfTurn = 10'000;

constexpr double kMostPlanningSeconds = 0.2;
constexpr double kMostPlanningGrowth = 20;
constexpr size_t kPlanningTurns = 7;

struct Times {
  double graph;
  double candidates;
  double count;
  double megabytes;
};

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Answers what Times holds, apart from the memory.
CaseApart CaseOf(const std::function<Expr(size_t)>& make, size_t operators) {
  return CaseApart([&make, operators, function = Expr(), specs = BenchSpecs()]() mutable {
    if (!function) function = make(operators);
    const size_t runs = kOperatorsOfTurn / operators;
    double graph_seconds = 0;
    double candidate_seconds = 0;
    size_t count = 0;
    for (size_t run = 0; run < runs; ++run) {
      std::optional<DataflowGraph> graph;
      graph_seconds += SecondsOf([&] { graph.emplace(function); });
      std::vector<CandidatePartition> candidates;
      candidate_seconds += SecondsOf([&] { candidates = AllCandidates(*graph, specs); });
      count = candidates.size();
    }
    const auto divisor = static_cast<double>(runs);
    return std::vector<double>{graph_seconds / divisor, candidate_seconds / divisor, static_cast<double>(count)};
  });
}

/// Of each size, and how much longer the largest takes than the size a tenth of it.
struct Turns {
  std::map<size_t, std::vector<Times>> times;
  std::vector<double> growth;
};

Turns MeasureInTurns(const std::function<Expr(size_t)>& make, const std::vector<size_t>& sizes) {
  std::vector<CaseApart> cases;
  for (const size_t operators : sizes) cases.push_back(CaseOf(make, operators));
  Turns turns;
  for (size_t turn = 0; turn < kTurns; ++turn) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      const CaseUsage usage = cases[i].Run();
      turns.times[sizes[i]].push_back({usage.values[0], usage.values[1], usage.values[2], usage.peak_megabytes});
    }
    const Times& small = turns.times.at(sizes.front()).back();
    const Times& large = turns.times.at(10 * sizes.front()).back();
    turns.growth.push_back((large.graph + large.candidates) / (small.graph + small.candidates));
  }
  return turns;
}

double MedianOf(const std::vector<Times>& turns, double Times::*field) {
  std::vector<double> values;
  for (const Times& times : turns) values.push_back(times.*field);
  return Median(values);
}

/// Answers the seconds in which a program of so many operators is planned, the mean of `runs`.
CaseApart PlanningOf(size_t operators, size_t runs) {
  return CaseApart([operators, runs, module = std::optional<IRModule>(),
                    devices = DeviceConfiguration::Create({{DeviceKind::kCpu, 0, {Target{DeviceKind::kCpu, {}}}},
                                                           {DeviceKind::kCuda, 0, {Target{DeviceKind::kCuda, {}}}}},
                                                          std::nullopt, std::nullopt)
                                  .value()]() mutable {
    if (!module) module = IRModule::FromMain(AnnotatedChain(operators));
    const auto plan_all = [&] {
      for (size_t run = 0; run < runs; ++run) PlanDevices(*module, devices, Operators()).value();
    };
    return std::vector<double>{SecondsOf(plan_all) / static_cast<double>(runs)};
  });
}

int BoundPlanning() {
  constexpr size_t kSmall = 10'000;
  BoundTable table({"planning of devices", "operators", "time", "growth of time"});
  CaseApart small = PlanningOf(kSmall, 10);
  CaseApart large = PlanningOf(10 * kSmall, 1);
  std::vector<double> small_times;
  std::vector<double> large_times;
  std::vector<double> growth;
  for (size_t turn = 0; turn < kPlanningTurns; ++turn) {
    small_times.push_back(small.Run().values[0]);
    large_times.push_back(large.Run().values[0]);
    growth.push_back(large_times.back() / small_times.back());
  }
  table.Row({"annotated chain", std::to_string(kSmall), table.Bounded(Median(small_times), kMostPlanningSeconds, " s")});
  const double most_seconds = kMostPlanningGrowth * kMostPlanningSeconds;
  table.Row({"annotated chain", std::to_string(10 * kSmall), table.Bounded(Median(large_times), most_seconds, " s"),
             table.Bounded(Median(growth), kMostPlanningGrowth, "x")});
  return table.ExitCode();
}

}  // namespace
}  // namespace collage

int main() {
  using namespace collage;  // NOLINT(google-build-using-namespace)
  const int planning = BoundPlanning();
  BoundTable table({"function", "operators", "graph", "candidates", "count", "peak memory", "growth of time"});
  struct Shape {
    std::string name;
    std::function<Expr(size_t)> make;
    std::vector<size_t> sizes;
  };
  for (const Shape& shape : {Shape{"chain", ConvolutionChain, {1000, 10000}}, Shape{"residual blocks", ResidualNetwork, {1000, 10000}},
                             Shape{"NASNet-like", NasnetLike, {1000, 2000, 10000}}}) {
    const Turns turns = MeasureInTurns(shape.make, shape.sizes);
    for (const auto& [operators, times] : turns.times) {
      std::vector<std::string> row = {shape.name,
                                      std::to_string(operators),
                                      table.Bounded(MedianOf(times, &Times::graph), kMostSeconds, " s"),
                                      table.Bounded(MedianOf(times, &Times::candidates), kMostSeconds, " s"),
                                      std::to_string(static_cast<size_t>(times.front().count)),
                                      table.Bounded(times.back().megabytes, kMostMegabytes, " MiB")};
      if (operators == 10 * shape.sizes.front()) row.push_back(table.Bounded(Median(turns.growth), kMostGrowth, "x"));
      table.Row(row);
    }
  }
  return std::max(table.ExitCode(), planning);
}
