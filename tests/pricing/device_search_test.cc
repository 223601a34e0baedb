// Cover, layouts, variants and devices together: the search equals brute force on all graphs up to five operators with two devices, two
// targets each, two layouts, and prices of copies.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "collage/pricing/problem.h"
#include "collage/support/hash.h"
#include "tests/candidate/small_graphs.h"

namespace collage {
namespace {

constexpr size_t kDevices = 2;
constexpr size_t kTargets = 4;  // two a device

size_t DeviceOf(size_t target) { return target / 2; }

using Place = std::pair<size_t, Layout>;

/// Microseconds, a few of them equal.
double PriceBy(uint64_t seed, uint64_t what, uint64_t most) {
  return static_cast<double>(1 + HashCombine(HashCombine(seed, what), 77) % most);
}

double PriceOfMove(uint64_t seed, const Place& from, const Place& to) {
  if (from == to) return 0;
  const bool stays = from.first == to.first;
  return PriceBy(seed, HashBytes(from.second.ToString() + to.second.ToString()) + from.first * 2 + to.first, stays ? 3 : 9);
}

/// Single calls, and calls with a reader, for every target in both layouts; some are missing.
std::vector<PricedCandidate> Candidates(const DataflowGraph& graph, uint64_t seed) {
  const auto spec = std::make_shared<const PartitionSpec>(PartitionSpec{"library", {Target{}}, nullptr});
  std::vector<IndexSet> insides;
  for (PostDfsIndex a = 0; a < graph.size(); ++a) {
    if (!CalledOp(graph[a].expr)) continue;
    insides.push_back(IndexSet({a}));
    for (PostDfsIndex b = a + 1; b < graph.size(); ++b) {
      const bool reads = std::find(graph[b].inputs.begin(), graph[b].inputs.end(), a) != graph[b].inputs.end();
      if (CalledOp(graph[b].expr) && reads) insides.push_back(IndexSet({a, b}));
    }
  }
  std::vector<PricedCandidate> candidates;
  for (const IndexSet& inside : insides) {
    const SubGraph sub_graph(graph, inside);
    if (!sub_graph.IsValid(graph, {.allow_taps = true})) continue;
    Result<ExtractedFunction> extracted = ExtractFunction(graph, sub_graph);
    if (!extracted) continue;
    PricedCandidate candidate{{sub_graph, spec}, std::move(*extracted)};
    for (size_t target = 0; target < kTargets; ++target) {
      const uint64_t id = HashCombine(inside.Hash(), target);
      if (inside.Count() > 1 && PriceBy(seed, id, 3) > 2) continue;
      candidate.backend = target;
      candidate.variants.clear();
      for (const Layout& layout : {Layout(), Layout::Of("A2a")}) {
        PricedVariant variant;
        variant.variant = {layout.ToString(), std::vector<Layout>(candidate.extracted.inputs.size(), layout),
                           std::vector<Layout>(candidate.extracted.outputs.size(), layout)};
        variant.cost = Cost::Microseconds(PriceBy(seed, HashCombine(id, candidate.variants.size()), 12));
        variant.device = DeviceOf(target);
        candidate.variants.push_back(std::move(variant));
      }
      candidates.push_back(candidate);
    }
  }
  return candidates;
}

/// Tries every cover with every variant, and every copy that it needs from where the tensor is made.
class BruteForceCover {
 public:
  BruteForceCover(const DataflowGraph& graph, const FunctionProblem& built, const std::vector<PricedCandidate>& candidates, uint64_t seed)
      : graph_(graph), built_(built), candidates_(candidates), seed_(seed) {
    for (PostDfsIndex node = 0; node < graph.size(); ++node) {
      if (CalledOp(graph[node].expr)) calls_.Add(node);
    }
    const Function& function = *graph.function()->As<Function>();
    for (const TensorSource& source : ResolveTensors(graph, graph.IndexOf(function.body))) {
      if (!graph[source.node].expr->As<Constant>()) results_.insert(source);
    }
  }

  double Cheapest() {
    Extend(calls_, 0);
    return best_;
  }

 private:
  void Extend(const IndexSet& open, double kernels) {
    if (kernels >= best_) return;
    if (open.Empty()) return Finish(kernels);
    for (size_t c = 0; c < candidates_.size(); ++c) {
      const IndexSet inside = candidates_[c].candidate.sub_graph.inside() & calls_;
      if (!inside.Contains(open.First()) || !inside.IsSubsetOf(open)) continue;
      for (size_t v = 0; v < candidates_[c].variants.size(); ++v) {
        chosen_.push_back({c, v});
        Extend(open - inside, kernels + candidates_[c].variants[v].cost.ToMicroseconds());
        chosen_.pop_back();
      }
    }
  }

  void Finish(double price) {
    if (!FindCycle(built_.problem, chosen_).empty()) return;
    std::map<TensorSource, Place> made;
    std::map<TensorSource, std::set<Place>> wanted;
    for (const auto& [c, v] : chosen_) {
      const ExtractedFunction& function = candidates_[c].extracted;
      const PricedVariant& variant = candidates_[c].variants[v];
      for (size_t i = 0; i < function.inputs.size(); ++i) wanted[function.inputs[i]].insert({variant.device, variant.variant.inputs[i]});
      for (size_t i = 0; i < function.outputs.size(); ++i) made[function.outputs[i]] = {variant.device, variant.variant.outputs[i]};
    }
    for (const TensorSource& result : results_) wanted[result].insert({0, Layout()});
    for (const auto& [tensor, places] : wanted) {
      const auto at = made.find(tensor);
      for (const Place& place : places) price += PriceOfMove(seed_, at == made.end() ? Place{0, Layout()} : at->second, place);
    }
    best_ = std::min(best_, price);
  }

  const DataflowGraph& graph_;
  const FunctionProblem& built_;
  const std::vector<PricedCandidate>& candidates_;
  uint64_t seed_;
  IndexSet calls_;
  std::set<TensorSource> results_;
  std::vector<SearchChoice> chosen_;
  double best_ = 1e9;
};

class DeviceSearchTest : public testing::TestWithParam<size_t> {};

TEST_P(DeviceSearchTest, EqualsBruteForce) {
  size_t graphs = 0;
  std::set<size_t> devices;
  size_t mixed = 0;
  ForEveryConnectedDag(GetParam(), 1, [&](const Expr& function) {
    const uint64_t seed = ++graphs;
    if (HasFailure()) return;
    const DataflowGraph graph(function);
    const std::vector<PricedCandidate> candidates = Candidates(graph, seed);
    FunctionProblem built = BuildProblem(graph, candidates, kTargets, {}).value();
    built.problem.conversion = [&](size_t, size_t from, size_t to) {
      return Cost::Microseconds(PriceOfMove(seed, {built.devices[from], built.layouts[from]}, {built.devices[to], built.layouts[to]}));
    };
    const Result<SearchResult> found = SearchDijkstra(built.problem);
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_NEAR(found->cost.ToMicroseconds(), BruteForceCover(graph, built, candidates, seed).Cheapest(), 1e-6) << "graph " << graphs;
    devices.clear();
    for (const SearchChoice& choice : found->choices) devices.insert(DeviceOf(candidates[choice.candidate].backend));
    mixed += devices.size() == kDevices ? 1 : 0;
  });
  EXPECT_GT(graphs, 0u);
  // Both devices in one cover: else nothing about copies was tried.
  if (GetParam() > 3) {
    EXPECT_GT(mixed, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(UpToFiveOperators, DeviceSearchTest, testing::Range(size_t{1}, size_t{6}));

}  // namespace
}  // namespace collage
