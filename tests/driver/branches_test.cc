#include "collage/driver/branches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/candidate/library_calls.h"
#include "collage/driver/joins.h"
#include "collage/explain/plan_names.h"
#include "collage/ir/print.h"
#include "tests/driver/decided.h"
#include "tests/driver/host_library.h"

namespace collage {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

/// Takes what the driver gives it, as long as the test says.
class Together : public HostLibrary {
 public:
  using HostLibrary::HostLibrary;
  [[nodiscard]] std::string_view Name() const override { return "together"; }
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    rules.runs_side_by_side = true;
    return rules;
  }
};

/// A backend with threads of its own.
class OwnThreads : public HostLibrary {
 public:
  using HostLibrary::HostLibrary;
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    rules.style = BackendRules::Style::kPredicate;
    rules.supports = [](const Expr&) { return Verdict::Accept(); };
    return rules;
  }
};

constexpr double kSeconds = 200e-6;  // of each operator by itself

/// As in an Inception block: branches of one, two and two operators between a fork and a join.
constexpr const char* kBlock =
    "fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); %1 = sigmoid(%0); %2 = tanh(%0); %3 = sigmoid(%2); %4 = nn.relu(%0); "
    "%5 = tanh(%4); %6 = add(%1, %3); add(%6, %5) }";
constexpr const char* kChain = "fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); %1 = sigmoid(%0); tanh(%1) }";

class BranchesTest : public testing::Test {
 protected:
  std::unique_ptr<Decided> Start(const char* text, const Backend& library, const Backend& together, int threads = 2,
                                 const UserConstraints& said = {}) {
    return std::make_unique<Decided>(Parsed(text), Decided::On{{TargetOf(library), TargetOf(together)}, threads}, cache_, CompileOptions(),
                                     MeasureOptions(), said);
  }

  static std::vector<PricedCandidate> Found(Decided& decided) {
    const Decision decision = decided.Decide().value();
    std::vector<PricedCandidate> found;
    for (BranchCandidate& one :
         BranchesSideBySide(decided.placement(), MakePlan(decided.placement(), "searched", decision.best), decided.Prices()))
      found.push_back(std::move(one.candidate));
    return found;
  }

  static std::vector<std::string> OperatorsOf(const Decided& decided, const PricedCandidate& candidate) {
    std::vector<std::string> operators;
    candidate.candidate.sub_graph.inside().ForEach([&](PostDfsIndex node) {
      if (const OpDef* op = CalledOp((*decided.placement().graph)[node].expr)) operators.push_back(op->name);
    });
    return operators;
  }

  static std::vector<std::string> NamesOf(const FinalPlans& plans) {
    std::vector<std::string> names;
    for (const Plan& plan : plans.plans) names.push_back(plan.name);
    return names;
  }

  SimulatedClock clock_;
  HostLibrary library_{kSeconds};
  MeasurementCache cache_ = MeasurementCache::Open({}).value();
};

TEST_F(BranchesTest, ChainsBetweenAForkAndAJoinAreOfferedTogether) {
  const Together together{kSeconds};
  const auto decided = Start(kBlock, library_, together);
  const std::vector<PricedCandidate> found = Found(*decided);
  // Threads that end together first: two chains of two operators, their first operators, all that there is, all but one of the longest.
  std::vector<size_t> sizes;
  for (const PricedCandidate& candidate : found) sizes.push_back(OperatorsOf(*decided, candidate).size());
  ASSERT_THAT(sizes, ElementsAre(4, 2, 2, 5, 3));
  EXPECT_THAT(OperatorsOf(*decided, found[0]), ElementsAre("tanh", "sigmoid", "nn.relu", "tanh"));
  EXPECT_THAT(OperatorsOf(*decided, found[3]), ElementsAre("sigmoid", "tanh", "sigmoid", "nn.relu", "tanh"));
  const std::string text = Print(found[0].extracted.function);
  for (const char* said : {"Compiler=\"library\"", "Share=0", "Share=1", "Threads=2", "Compiler=\"together\""})
    EXPECT_THAT(text, HasSubstr(said));
  const std::vector<LibraryPart> parts = LibraryParts(found[0].candidate);
  EXPECT_FALSE(parts.empty()) << "what forbids the library forbids this";
  for (const LibraryPart& part : parts) EXPECT_EQ(part.library, "library");
  EXPECT_EQ(found[0].extracted.inputs.size(), 1u);
  EXPECT_EQ(found[0].extracted.outputs.size(), 2u);
}

TEST_F(BranchesTest, TheyAreTakenWhereFasterAndRaceBesideThePlanWithoutThem) {
  const Together together{2 * kSeconds};
  const auto decided = Start(kBlock, library_, together);
  decided->Add(Found(*decided));
  const Decision decision = decided->Decide().value();
  EXPECT_EQ(decision.best.partitions, 4u) << "fork, block and two sums";
  EXPECT_NEAR(decision.best.cost.ToSeconds(), 5 * kSeconds, 0.1 * kSeconds);
  const FinalPlans plans = decided->Plans();
  EXPECT_THAT(NamesOf(plans), Contains(kBranchesInTurn));
  EXPECT_THAT(NamesOf(plans), Not(Contains("together"))) << "it is nobody's plan alone";
  const Plan& in_turn =
      *std::find_if(plans.plans.begin(), plans.plans.end(), [](const Plan& plan) { return plan.name == kBranchesInTurn; });
  EXPECT_EQ(in_turn.kernels.size(), 8u);
  const Result<RaceOutcome> race = decided->Race({plans.plans.front(), in_turn});
  ASSERT_TRUE(race) << race.error().message;
  EXPECT_EQ(race->winner, 0u);
  EXPECT_EQ(race->not_compared, "");
  ASSERT_THAT(race->timings, SizeIs(2));
  EXPECT_EQ(race->timings[1].name, kBranchesInTurn);
  EXPECT_NEAR(race->timings[1].ratio, 8.0 / 5, 0.1);
}

TEST_F(BranchesTest, TheyAreLeftWhereSlower) {
  const Together together{6 * kSeconds};
  const auto decided = Start(kBlock, library_, together);
  decided->Add(Found(*decided));
  EXPECT_EQ(decided->Decide().value().best.partitions, 8u);
  EXPECT_THAT(NamesOf(decided->Plans()), Not(Contains(kBranchesInTurn)));
  EXPECT_THAT(Found(*decided), IsEmpty()) << "what is there is not offered again";
}

TEST_F(BranchesTest, OnlyAPriceBelowThatOfItsPartsMakesThemCheaper) {
  const auto are_cheaper = [&](double seconds_together) {
    cache_ = MeasurementCache::Open({}).value();
    const Together together{seconds_together};
    const auto decided = Start(kBlock, library_, together);
    const std::vector<PricedCandidate> found = Found(*decided);
    const std::vector<SearchChoice> parts = decided->Decide().value().best.choices;
    const size_t first = decided->placement().candidates.size();
    decided->Add(found);
    EXPECT_FALSE(IsCheaperThanParts(decided->placement(), first, parts, decided->Prices())) << "it has no price";
    (void)decided->Decide().value();
    return IsCheaperThanParts(decided->placement(), first, parts, decided->Prices());
  };
  constexpr double kParts = 4 * kSeconds;
  EXPECT_TRUE(are_cheaper(0.5 * kParts));
  EXPECT_FALSE(are_cheaper(1.5 * kParts));
}

TEST_F(BranchesTest, PlansThatMayRaceAreCountedAsTheirPricesAreKnown) {
  const Together together{2 * kSeconds};
  const auto decided = Start(kBlock, library_, together);
  const PlanCounts at_first = MostPlansToRace(decided->placement(), decided->Prices(), {});
  EXPECT_EQ(at_first.single_backends.size(), 0u);
  decided->Add(Found(*decided));
  (void)decided->Decide().value();
  const PlanCounts known = MostPlansToRace(decided->placement(), decided->Prices(), {});
  EXPECT_EQ(known.searched, at_first.searched);
  EXPECT_EQ(known.single_backends.size(), 1u) << "the library alone";
  EXPECT_LE(decided->Plans().plans.size(), known.searched + known.single_backends.size());
}

TEST_F(BranchesTest, AKeptJoinGivesALaterCompileTheSameCandidates) {
  const Together together{2 * kSeconds};
  const auto decided = Start(kBlock, library_, together);
  const SearchResult best = decided->Decide().value().best;
  const std::vector<BranchCandidate> found =
      BranchesSideBySide(decided->placement(), MakePlan(decided->placement(), "searched", best), decided->Prices());
  ASSERT_THAT(found, SizeIs(5));
  const JoinedPlan join{best.choices, {found[3].branches, found[0].branches}};
  const MeasurementKey key = decided->pricer().KeyOf(Fact::kJoins, 7);
  ASSERT_TRUE(StoreJoins(decided->pricer(), key, {join, {}}));

  const auto later = Start(kBlock, library_, together);
  const std::vector<JoinedPlan> kept = LoadJoins(later->pricer(), key).value();
  ASSERT_THAT(kept, SizeIs(2));
  EXPECT_TRUE(kept[0].choices == join.choices && kept[0].branches == join.branches);
  EXPECT_TRUE(kept[1].choices.empty() && kept[1].branches.empty());
  ASSERT_TRUE(IsOf(later->placement(), kept[0]));
  const size_t first = later->placement().candidates.size();
  const PlacementPointer joined = Joined(later->placement(), kept[0], later->pricer()).value();
  ASSERT_EQ(joined->candidates.size(), first + 2);
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(Print(joined->candidates[first + i].extracted.function), Print(found[i == 0 ? 3 : 0].candidate.extracted.function));
  }
}

TEST_F(BranchesTest, JoinsThatCannotBeReadOrAreOfAnotherPlacementAreNone) {
  const Together together{2 * kSeconds};
  const auto decided = Start(kBlock, library_, together);
  const MeasurementKey key = decided->pricer().KeyOf(Fact::kJoins, 7);
  EXPECT_THAT(LoadJoins(decided->pricer(), key).value(), IsEmpty()) << "nothing is kept";
  // Lists that are longer than what is there, and numbers that belong to nothing.
  for (const std::vector<double>& numbers : {std::vector<double>{1}, {1, 1, 0}, {1, 1, 0, 0, 1, 1}, {0, 5}, {1e300}}) {
    ASSERT_TRUE(cache_.Store(key, {numbers, {}}));
    EXPECT_THAT(LoadJoins(decided->pricer(), key).value(), IsEmpty());
  }
  const std::vector<SearchChoice> best = decided->Decide().value().best.choices;
  EXPECT_TRUE(IsOf(decided->placement(), {best, {{{0}, {best.size() - 1}}}}));
  EXPECT_FALSE(IsOf(decided->placement(), {best, {{{0}, {best.size()}}}}));
  EXPECT_FALSE(IsOf(decided->placement(), {{{decided->placement().candidates.size(), 0}}, {}}));
  EXPECT_FALSE(IsOf(decided->placement(), {{{0, 1000}}, {}}));
}

TEST_F(BranchesTest, NothingIsOfferedWhereNothingCanRunAtTheSameTime) {
  const Together together{kSeconds};
  EXPECT_THAT(Found(*Start(kChain, library_, together)), IsEmpty()) << "a chain";
  EXPECT_THAT(Found(*Start(kBlock, library_, together, 1)), IsEmpty()) << "a team of one";
  const OwnThreads compiler{kSeconds};
  EXPECT_THAT(Found(*Start(kBlock, compiler, together)), IsEmpty()) << "threads that no team confines";
}

TEST_F(BranchesTest, ForbidsAndPinsHold) {
  const Together together{kSeconds};
  EXPECT_THAT(Found(*Start(kBlock, library_, together, 2, {{}, {"together"}})), IsEmpty());
  const auto decided = Start(kBlock, library_, together, 2, {{"tanh=library"}, {}});
  for (const PricedCandidate& candidate : Found(*decided))
    EXPECT_THAT(OperatorsOf(*decided, candidate), Not(Contains("tanh"))) << "what is pinned to a library is its alone";
}

}  // namespace
}  // namespace collage
