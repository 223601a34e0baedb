// MergeAssigned against its written rules, for every connected DAG of up to six operators and seeded ones to twelve, each with
// assignments of its operators to two backends and native.

#include <gtest/gtest.h>

#include <algorithm>

#include "collage/op/interpreter.h"
#include "collage/partition/classic_flow.h"
#include "collage/support/hash.h"
#include "tests/candidate/oracle.h"
#include "tests/candidate/small_graphs.h"
#include "tests/dataflow/evaluate.h"

namespace collage {
namespace {

using Mask = Oracle::Mask;
constexpr size_t kNative = 2;

Mask Bit(size_t node) { return Mask{1} << node; }

Mask ToMask(const IndexSet& set) {
  Mask mask = 0;
  set.ForEach([&](size_t node) { mask |= Bit(node); });
  return mask;
}

/// Tuples and projections that are each other's neighbours, and what stands around them.
struct Bundle {
  Mask members = 0;
  Mask neighbours = 0;
  bool may_join = true;
};

class Case {
 public:
  Case(const DataflowGraph& graph, const Oracle& oracle, std::vector<size_t> owner)
      : graph_(graph), oracle_(oracle), owner_(std::move(owner)), calls_(oracle.Calls()) {
    for (const size_t node : Oracle::Members(calls_)) {
      assigned_.push_back({owner_[node], IndexSet({node}), {}});
    }
    regions_ = MergeAssigned(graph, assigned_, kNative);
    for (const BackendRegion& region : regions_) sets_.push_back(ToMask(region.nodes));
    FindBundles();
  }

  [[nodiscard]] const std::vector<BackendRegion>& regions() const { return regions_; }

  void Check() const {
    EveryCallOfABackendIsInOneRegion();
    TuplesAreWhereAllTheirNeighboursAre();
    EXPECT_TRUE(oracle_.IsAcyclicWhenContracted(sets_)) << Describe();
    NothingMoreCanBeJoined();
    TheFirstRegionIsAsLargeAsAnyOfItsSeed();
  }

 private:
  void EveryCallOfABackendIsInOneRegion() const {
    Mask covered = 0;
    for (size_t i = 0; i < sets_.size(); ++i) {
      EXPECT_EQ(covered & sets_[i], 0u) << Describe();
      covered |= sets_[i];
      for (const size_t node : Oracle::Members(sets_[i] & calls_)) EXPECT_EQ(owner_[node], regions_[i].backend) << Describe();
      if (i > 0) {
        EXPECT_LT(regions_[i - 1].nodes.First(), regions_[i].nodes.First());
      }
    }
    for (const size_t node : Oracle::Members(calls_)) EXPECT_EQ((covered & Bit(node)) != 0, owner_[node] != kNative) << Describe();
  }

  /// "Tuples and projections belong to the region that holds all their neighbours, else to the host."
  void TuplesAreWhereAllTheirNeighboursAre() const {
    Mask structural = 0;
    for (const Bundle& bundle : bundles_) {
      structural |= bundle.members;
      for (const Mask set : sets_) {
        const bool belongs = bundle.may_join && (bundle.neighbours & ~set) == 0;
        EXPECT_EQ(set & bundle.members, belongs ? bundle.members : 0) << Describe();
      }
    }
    for (const Mask set : sets_) EXPECT_EQ(set & ~(structural | calls_), 0u) << Describe();
  }

  /// "largest regions per target without creating a cycle": neither two that touch, nor all around a tuple, could be one.
  void NothingMoreCanBeJoined() const {
    for (size_t a = 0; a < sets_.size(); ++a) {
      for (size_t b = 0; b < sets_.size(); ++b) {
        if (a == b || regions_[a].backend != regions_[b].backend || !oracle_.Feeds(sets_[a], sets_[b])) continue;
        EXPECT_FALSE(CanBeOne(sets_[a] | sets_[b])) << "regions " << a << " and " << b << " could be one" << Describe();
      }
    }
    for (const Bundle& bundle : bundles_) {
      if (!bundle.may_join) continue;
      Mask together = bundle.members;
      for (const Mask set : sets_) {
        if ((set & bundle.neighbours) != 0) together |= set;
      }
      if (std::find(sets_.begin(), sets_.end(), together) == sets_.end()) {
        EXPECT_FALSE(CanBeOne(together)) << "all around a tuple could be one" << Describe();
      }
    }
  }

  [[nodiscard]] bool CanBeOne(Mask together) const {
    std::vector<Mask> sets = {together};
    for (const Mask set : sets_) {
      if ((set & together) == 0) sets.push_back(set);
    }
    return oracle_.IsAcyclicWhenContracted(sets);
  }

  /// "Where two maximal answers are equally large, the one that grows from the earliest node wins": no set that grows from the earliest
  /// node, by itself without a cycle, holds all of its region and more.
  void TheFirstRegionIsAsLargeAsAnyOfItsSeed() const {
    if (sets_.empty()) return;
    Mask own = 0;
    for (const size_t node : Oracle::Members(calls_)) own |= owner_[node] == regions_[0].backend ? Bit(node) : 0;
    const Mask free = own & ~sets_[0];
    for (Mask more = free; more != 0; more = (more - 1) & free) {
      const Mask larger = WithTuples((sets_[0] & calls_) | more);
      EXPECT_FALSE(oracle_.IsConvex(larger) && IsConnected(larger)) << "the first region could hold " << larger << Describe();
    }
  }

  [[nodiscard]] Mask WithTuples(Mask calls) const {
    for (const Bundle& bundle : bundles_) {
      if (bundle.may_join && (bundle.neighbours & ~calls) == 0) calls |= bundle.members;
    }
    return calls;
  }

  [[nodiscard]] bool IsConnected(Mask set) const {
    Mask reached = set & -set;
    for (bool grown = true; grown;) {
      grown = false;
      for (const size_t node : Oracle::Members(set & ~reached)) {
        if (!oracle_.Feeds(reached, Bit(node)) && !oracle_.Feeds(Bit(node), reached)) continue;
        reached |= Bit(node);
        grown = true;
      }
    }
    return reached == set;
  }

  void FindBundles() {
    const Mask structural =
        oracle_.Where([](const Expr& expr) { return expr->As<Tuple>() != nullptr || expr->As<TupleGetItem>() != nullptr; });
    Mask left = structural;
    while (left != 0) {
      Bundle bundle{left & -left};
      Mask around = 0;
      for (Mask before = 0; before != bundle.members;) {
        before = bundle.members;
        around = 0;
        for (size_t node = 0; node < oracle_.size(); ++node) {
          if (oracle_.Feeds(Bit(node), bundle.members) || oracle_.Feeds(bundle.members, Bit(node))) around |= Bit(node);
        }
        bundle.members |= around & structural;
      }
      bundle.neighbours = around & ~bundle.members;
      // The result of the function has the function as a neighbour, which is in no region; so have parameters.
      bundle.may_join = (bundle.neighbours & ~calls_) == 0;
      for (const size_t node : Oracle::Members(bundle.neighbours & calls_)) {
        bundle.may_join = bundle.may_join && owner_[node] != kNative && owner_[node] == owner_[Oracle::Members(bundle.neighbours)[0]];
      }
      bundles_.push_back(bundle);
      left &= ~bundle.members;
    }
  }

  [[nodiscard]] std::string Describe() const {
    std::string text = "; owners";
    for (const size_t node : Oracle::Members(calls_)) text += " " + std::to_string(node) + ":" + std::to_string(owner_[node]);
    text += "; regions";
    for (const BackendRegion& region : regions_) text += " " + region.nodes.ToString();
    text += "; edges";
    for (size_t node = 0; node < graph_.size(); ++node) {
      for (const size_t output : graph_[node].outputs) text += " " + std::to_string(node) + ">" + std::to_string(output);
    }
    return text;
  }

  const DataflowGraph& graph_;
  const Oracle& oracle_;
  std::vector<size_t> owner_;
  Mask calls_;
  std::vector<SupportedRegion> assigned_;
  std::vector<BackendRegion> regions_;
  std::vector<Mask> sets_;
  std::vector<Bundle> bundles_;
};

/// "partitions executed by the reference equal the original"
void ExpectSameWhenExecuted(const DataflowGraph& graph, const std::vector<BackendRegion>& regions, uint64_t seed) {
  const IRModule module = IRModule::FromMain(graph.function());
  const Result<IRModule> partitioned = PartitionRegions(module, {{"main", &graph, regions}}, {"a", "b"}, {.bind_constants = seed % 2 == 0});
  ASSERT_TRUE(partitioned) << partitioned.error().message;
  const std::vector<Tensor> inputs = RandomInputs(graph.function(), seed);
  const auto expected = InterpretMain(module, inputs);
  const auto actual = InterpretMain(*partitioned, inputs);
  ASSERT_TRUE(expected && actual);
  ASSERT_EQ(actual->size(), expected->size());
  for (size_t i = 0; i < expected->size(); ++i) ASSERT_TRUE(BitwiseEqual((*actual)[i], (*expected)[i])) << "seed " << seed;
}

/// Numbers of assignments to try on the visited-th DAG: all of them up to five operators, of six those that differ by more than the names
/// of the two backends, seeded ones beyond.
std::vector<size_t> Assignments(size_t operators, size_t visited) {
  size_t all = 1;
  for (size_t i = 0; i < operators; ++i) all *= 3;
  std::vector<size_t> numbers;
  if (operators > 6) {
    for (size_t i = 0; i < 40; ++i) numbers.push_back(HashCombine(visited, i) % all);
    return numbers;
  }
  for (size_t number = 0; number < all; ++number) {
    size_t first = number;
    while (first % 3 == kNative && first > 0) first /= 3;
    const bool is_renamed = first % 3 == 1;  // as another whose first backend is the other one
    if (operators == 6 && is_renamed) continue;
    numbers.push_back(number);
  }
  return numbers;
}

/// Each operator's backend in the number-th assignment.
std::vector<size_t> Owners(const DataflowGraph& graph, const Oracle& oracle, size_t number) {
  std::vector<size_t> owner(graph.size(), kNative);
  for (const size_t node : Oracle::Members(oracle.Calls())) {
    owner[node] = number % 3;
    number /= 3;
  }
  return owner;
}

class MergeEveryDag : public testing::TestWithParam<size_t> {};

TEST_P(MergeEveryDag, RegionsAreAcyclicMaximalAndComputeTheSame) {
  const size_t operators = GetParam();
  size_t visited = 0;
  size_t regions = 0;
  size_t most_regions = 0;
  const auto visit = [&](const Expr& function) {
    ++visited;
    if (HasFailure()) return;
    const DataflowGraph graph(function);
    const Oracle oracle(graph);
    for (const size_t number : Assignments(operators, visited)) {
      if (HasFailure()) return;
      const Case one(graph, oracle, Owners(graph, oracle, number));
      one.Check();
      regions += one.regions().size();
      most_regions = std::max(most_regions, one.regions().size());
      const bool is_executed = operators <= 4 || (number + visited) % (operators == 5 ? 30 : operators == 6 ? 90 : 6) == 0;
      if (is_executed && !HasFailure()) ExpectSameWhenExecuted(graph, one.regions(), number);
    }
  };
  if (operators <= 6) {
    ForEveryConnectedDag(operators, 11, visit);
    EXPECT_EQ(visited, (std::vector<size_t>{1, 1, 4, 38, 728, 26704})[operators - 1]);
  } else {
    for (uint64_t round = 0; round < 60; ++round) visit(RandomDag(operators, 7000 + round * 13 + operators));
  }
  EXPECT_GT(regions, visited);
  EXPECT_GE(most_regions, operators < 3 ? 1 : operators / 2);
}

INSTANTIATE_TEST_SUITE_P(Operators, MergeEveryDag, testing::Range<size_t>(1, 13));

}  // namespace
}  // namespace collage
