#include "collage/driver/search_by_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/decide/priced_problem.h"
#include "collage/driver/whole_plans.h"
#include "collage/ir/op_sequence.h"
#include "tests/driver/decided.h"

namespace collage {
namespace {

/// A library of single operators, or a graph compiler of any region, whose kernels take as long as `seconds` says of their operators.
class CountingBackend : public Backend {
 public:
  using Seconds = std::function<double(size_t operators)>;
  CountingBackend(std::string name, BackendRules::Style style, Seconds seconds)
      : name_(std::move(name)), style_(style), seconds_(std::move(seconds)) {}

  [[nodiscard]] std::string_view Name() const override { return name_; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    rules.style = style_;
    if (style_ == BackendRules::Style::kPredicate) {
      rules.supports = [](const Expr&) { return Verdict::Accept(); };
      return rules;
    }
    for (const char* op : {"nn.relu", "sigmoid", "tanh"})
      rules.patterns.push_back({name_ + "." + op, pattern::CallOf(op, {pattern::Wildcard()}), {}});
    return rules;
  }
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device&) const override {
    // No kernel by which transitions are measured.
    if (function.body->type().AsTensor()->shape != Shape{1, 8}) return {};
    return {{"only", {Layout()}, {Layout()}}};
  }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    const size_t operators = ToOpSequence(function).value().steps.size();
    return CompileTimed(function, device, variant, [this, operators] { return seconds_(operators); });
  }

 private:
  std::string name_;
  BackendRules::Style style_;
  Seconds seconds_;
};

constexpr const char* kProgram = "fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); %1 = sigmoid(%0); %2 = nn.relu(%1); tanh(%2) }";

class SearchByNameTest : public testing::Test {
 protected:
  Decided Start() { return Decided(Parsed(kProgram), {&library_, &compiler_}, cache_, options_); }

  /// A kernel of n operators costs n us by the library, and 3 us and a half for each by the graph compiler.
  static std::vector<Cost> CostsOf(const Placement& placement) {
    std::vector<Cost> costs;
    for (const PlacedKernel& kernel : placement.kernels) {
      const auto operators = static_cast<double>(placement.built.problem.candidates[kernel.candidate].inside.Count());
      costs.push_back(Cost::Microseconds(kernel.key.backend == "library" ? operators : 3 + operators / 2));
    }
    return costs;
  }

  static std::vector<std::string> BackendsOf(const Placement& placement, const SearchResult& result) {
    std::vector<std::string> names;
    for (const SearchChoice& choice : result.choices) names.push_back(placement.NameOf(placement.candidates[choice.candidate].backend));
    return names;
  }

  SimulatedClock clock_;
  CountingBackend library_{"library", BackendRules::Style::kPattern,
                           [](size_t operators) { return 1e-3 * static_cast<double>(operators); }};
  CountingBackend compiler_{"compiler", BackendRules::Style::kPredicate, [](size_t) { return 2e-3; }};
  CompileOptions options_;
  MeasurementCache cache_ = MeasurementCache::Open({}).value();
};

TEST_F(SearchByNameTest, TheExactOnesAgreeAndGreedyTakesTheFirstTarget) {
  Decided decided = Start();
  const Placement& placement = decided.placement();
  const std::vector<Cost> costs = CostsOf(placement);
  for (const char* name : {"sweep", "dijkstra", "exact", "op-level"}) {
    const SearchResult found = SearchByName(name, placement, costs, {}, {}).value();
    EXPECT_EQ(found.cost, Cost::Microseconds(4)) << name;
    EXPECT_THAT(BackendsOf(placement, found), testing::Each("library")) << name;
  }
  // The last tie-break of greedy is the order of the targets.
  Decided other(Parsed(kProgram), {&compiler_, &library_}, cache_, options_);
  const SearchResult greedy = SearchByName("greedy", other.placement(), CostsOf(other.placement()), {}, {}).value();
  EXPECT_EQ(greedy.cost, Cost::Microseconds(5));
  EXPECT_THAT(BackendsOf(other.placement(), greedy), testing::ElementsAre("compiler"));
  EXPECT_THAT(SearchByName("best", placement, costs, {}, {}).error().message, testing::HasSubstr("'best'"));
}

TEST_F(SearchByNameTest, TheGraphLevelFindsWhatOnlyTimesOfWholePlansTell) {
  Decided decided = Start();
  const Placement& placement = decided.placement();
  const std::vector<Cost> costs = CostsOf(placement);
  EXPECT_EQ(SearchByName("evolutionary", placement, costs, {}, {}).value().cost, Cost::Microseconds(4)) << "by the sum of prices";
  std::vector<Evidence> evidence = decided.evidence();
  WholePlans plans(placement, decided.pricer(), &decided.measurer(), evidence);
  const auto time = [&](const std::vector<SearchChoice>& cover) { return plans.TimeOf(cover); };
  const SearchResult found = SearchByName("evolutionary", placement, costs, time, {}).value();
  ASSERT_TRUE(plans.status()) << plans.status().error().message;
  // 4 kernels of 1 ms each, or one of 2 ms.
  EXPECT_THAT(BackendsOf(placement, found), testing::ElementsAre("compiler"));
  EXPECT_NEAR(plans.TimeOf(found.choices).ToSeconds(), 2e-3, 1e-4);

  // An equal search is answered from the cache.
  WholePlans known(placement, decided.pricer(), nullptr, evidence);
  const auto recall = [&](const std::vector<SearchChoice>& cover) { return known.TimeOf(cover); };
  EXPECT_EQ(SearchByName("evolutionary", placement, costs, recall, {}).value().choices, found.choices);
}

TEST_F(SearchByNameTest, WithoutAMeasurerAndAnEntryAPlanIsInvalid) {
  Decided decided = Start();
  std::vector<Evidence> evidence = decided.evidence();
  WholePlans plans(decided.placement(), decided.pricer(), nullptr, evidence);
  const SearchResult any = SearchByName("sweep", decided.placement(), CostsOf(decided.placement()), {}, {}).value();
  EXPECT_TRUE(plans.TimeOf(any.choices).IsInvalid());
  EXPECT_TRUE(plans.status());
}

TEST_F(SearchByNameTest, APlanThatSomebodyHasChosenRacesInPlaceOfTheSearchedOne) {
  Decided decided = Start();
  ASSERT_TRUE(decided.Decide());
  const SearchResult greedy = SearchByName("op-level", decided.placement(), Centres(decided.Prices()), {}, {}).value();
  const FinalPlans plans = PlansToRace(decided.placement(), decided.Prices(), {}, options_.declared, greedy).value();
  EXPECT_EQ(plans.plans.front().result.choices, greedy.choices);
  EXPECT_EQ(plans.plans.front().name, "searched");
}

}  // namespace
}  // namespace collage
