#include "collage/driver/race.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "collage/explain/plan_names.h"
#include "tests/driver/decided.h"

namespace collage {
namespace {

/// Each activation by itself or, where it may, two at once; all kernels take the time that they are told.
class NamedBackend : public Backend {
 public:
  NamedBackend(std::string name, bool pairs, double seconds) : NamedBackend(std::move(name), pairs, [seconds] { return seconds; }) {}
  NamedBackend(std::string name, bool pairs, std::function<double()> seconds)
      : name_(std::move(name)), pairs_(pairs), seconds_(std::move(seconds)) {}
  [[nodiscard]] std::string_view Name() const override { return name_; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override {
    const auto relu = [](const Pattern& input) { return pattern::CallOf("nn.relu", {input}); };
    BackendRules rules;
    rules.patterns.push_back({name_ + ".relu", pairs_ ? relu(relu(pattern::Wildcard())) : relu(pattern::Wildcard()), {}});
    return rules;
  }
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device&) const override {
    // Nothing by which transitions are measured.
    if (function.body->type().AsTensor()->shape != Shape{1, 8}) return {};
    return {{"only", {Layout()}, {Layout()}}};
  }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    return CompileTimed(function, device, variant, seconds_);
  }

 private:
  std::string name_;
  bool pairs_;
  std::function<double()> seconds_;
};

std::vector<Plan> SinglesOf(const Decided& decided) {
  std::vector<Plan> singles = decided.Plans().plans;
  std::erase_if(singles, [](const Plan& plan) { return !plan.is_single_backend; });
  return singles;
}

class TiedPlansTest : public testing::Test {
 protected:
  /// Races the plans of two single backends; gives the winner's name.
  static std::string Winner(const NamedBackend& declared_first, const NamedBackend& declared_second) {
    MeasurementCache cache = MeasurementCache::Open({}).value();
    Decided decided(Parsed("fn (%x: Tensor[(1, 8), float32]) { nn.relu(nn.relu(%x)) }"), {&declared_first, &declared_second}, cache);
    EXPECT_TRUE(decided.Decide());
    const std::vector<Plan> singles = SinglesOf(decided);
    return singles[decided.Race(singles).value().winner].name;
  }

  SimulatedClock clock_;
};

TEST_F(TiedPlansTest, OfEquallyFastPlansThatOfTheBackendDeclaredFirstIsTaken) {
  const NamedBackend a("alpha", false, 1e-3);
  const NamedBackend b("beta", false, 1e-3);
  EXPECT_EQ(Winner(a, b), "alpha");
  EXPECT_EQ(Winner(b, a), "beta");
}

TEST_F(TiedPlansTest, FewerPartitionsCountBeforeTheDeclaredOrder) {
  const NamedBackend apart("apart", false, 1e-3);
  const NamedBackend pairs("pairs", true, 2e-3);
  EXPECT_EQ(Winner(apart, pairs), "pairs");
  EXPECT_EQ(Winner(pairs, apart), "pairs");
}

TEST_F(TiedPlansTest, WhatIsFasterIsNoTie) {
  const NamedBackend a("alpha", false, 1.05e-3);
  const NamedBackend b("beta", false, 1e-3);
  EXPECT_EQ(Winner(a, b), "beta");
  EXPECT_EQ(Winner(b, a), "beta");
}

TEST_F(TiedPlansTest, TheSearchedPlanThatLostIsTimedBesideTheWinner) {
  const NamedBackend a("alpha", false, 1.5e-3);
  const NamedBackend b("beta", false, 1e-3);
  MeasurementCache cache = MeasurementCache::Open({}).value();
  Decided decided(Parsed("fn (%x: Tensor[(1, 8), float32]) { nn.relu(nn.relu(%x)) }"), {&a, &b}, cache);
  ASSERT_TRUE(decided.Decide());
  std::vector<Plan> plans = SinglesOf(decided);
  ASSERT_EQ(plans.size(), 2u);
  plans[0].name = kSearchedPlan;
  plans[0].is_single_backend = false;
  const RaceOutcome race = decided.Race(plans).value();
  std::vector<std::string> names;
  for (const PlanTiming& timing : race.timings) names.push_back(timing.name);
  ASSERT_EQ(names, (std::vector<std::string>{"chosen", kSearchedPlan, "beta"}));
  EXPECT_NEAR(race.timings[1].ratio, 1.5, 0.1);
}

// Prices say that one is faster; single runs waver by more.
TEST_F(TiedPlansTest, ARaceThatCannotTellGoesOnUntilItsEnd) {
  std::mt19937 random(1);
  const auto wavering = [&random](double seconds) {
    return [&random, seconds] { return seconds * (0.5 + static_cast<double>(random() % 1000) / 1000); };
  };
  const NamedBackend a("alpha", false, wavering(1e-3));
  const NamedBackend b("beta", false, wavering(1.02e-3));
  CompileOptions options;
  options.race_seconds = 0.3;
  const auto seconds_of_race = [&](double seconds_until_end) {
    MeasurementCache cache = MeasurementCache::Open({}).value();
    Decided decided(Parsed("fn (%x: Tensor[(1, 8), float32]) { nn.relu(nn.relu(%x)) }"), {&a, &b}, cache, options);
    EXPECT_TRUE(decided.Decide());
    const std::vector<Plan> singles = SinglesOf(decided);
    const Clock::time_point start = Clock::now();
    EXPECT_TRUE(decided.RaceFor(seconds_until_end, singles));
    return Clock::SecondsSince(start);
  };
  EXPECT_LT(seconds_of_race(0), 1);
  EXPECT_GT(seconds_of_race(3), 2);
}

TEST_F(TiedPlansTest, WhereTimeIsOverOnlyWhatIsLikelyFastestRaces) {
  const NamedBackend a("alpha", false, 1e-3);
  const NamedBackend b("beta", false, 0.5e-3);
  const NamedBackend c("gamma", false, 2e-3);
  MeasurementCache cache = MeasurementCache::Open({}).value();
  Decided decided(Parsed("fn (%x: Tensor[(1, 8), float32]) { nn.relu(nn.relu(%x)) }"), {&a, &b, &c}, cache);
  ASSERT_TRUE(decided.Decide(decided.placement().Lying()));
  for (size_t kernel = 0; kernel < decided.placement().kernels.size(); ++kernel) ASSERT_TRUE(decided.MeasureAlone(kernel));
  const std::vector<Plan> singles = SinglesOf(decided);
  ASSERT_EQ(singles.size(), 3u);
  decided.EndTime();
  const RaceOutcome race = decided.Race(singles).value();
  EXPECT_EQ(singles[race.winner].name, "beta");
  ASSERT_EQ(race.missing.size(), 2u);
  EXPECT_EQ(race.missing[0].name, "alpha");
  EXPECT_EQ(race.missing[1].name, "gamma");
  EXPECT_EQ(race.missing[1].reason, "time ended before it was ready");
}

/// Right in every test that replaces weights by others like them, and for these very weights wrong: it gets sums beyond a limit wrong.
class LimitedBackend : public NamedBackend {
 public:
  explicit LimitedBackend(double seconds) : NamedBackend("limited", false, seconds) {}
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    rules.patterns.push_back({"limited.add", pattern::CallOf("add", {pattern::Wildcard(), pattern::IsConstant()}), {}});
    return rules;
  }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    class Saturating : public Kernel {
     public:
      explicit Saturating(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {
        inputs_ = kernel_->inputs();
        outputs_ = kernel_->outputs();
      }
      Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
        COLLAGE_TRY_STATUS(kernel_->Run(inputs, outputs, workspace));
        auto* values = static_cast<float*>(outputs[0]);
        for (int i = 0; i < 8; ++i) values[i] = std::min(values[i], 100.0f);
        return {};
      }

     private:
      std::unique_ptr<Kernel> kernel_;
    };
    return std::make_unique<Saturating>(COLLAGE_TRY(NamedBackend::Compile(function, device, variant)));
  }
};

class AddBackend : public NamedBackend {
 public:
  explicit AddBackend(std::string name = "careful", double seconds = 2e-3) : NamedBackend(std::move(name), false, seconds) {}
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    rules.patterns.push_back({"careful.add", pattern::CallOf("add", {pattern::Wildcard(), pattern::IsConstant()}), {}});
    return rules;
  }
};

Expr Adding(float weight, int times = 1) {
  const Expr x = MakeVar("x", TensorType{{1, 8}});
  const Tensor weights = Tensor::FromVector(TensorType{{1, 8}}, std::vector<float>(8, weight));
  Expr sum = x;
  for (int i = 0; i < times; ++i) sum = MakeCall(Operators().Find("add"), {sum, MakeConstant(weights)}).value();
  return MakeFunction({x}, sum).value();
}

// The one that races in each group is what the others are compared by, and those of another group with it.
TEST(GroupsTest, WhoRacesInEachGroupRacesOftenEnoughInTheFirst) {
  const SimulatedClock clock;
  const AddBackend fast("fast", 1e-3);
  const AddBackend slow("slow", 1.1e-3);
  MeasurementCache cache = MeasurementCache::Open({}).value();
  Decided decided(Adding(1), {&fast, &slow}, cache);
  ASSERT_TRUE(decided.Decide());
  decided.LimitWeights();
  const RaceOutcome race = decided.Race(SinglesOf(decided)).value();
  EXPECT_EQ(race.timings.size(), 3u);
  EXPECT_TRUE(race.noise.has_value()) << "too few rounds";
}

// The one that races in each group is not built once more only to race by itself.
TEST(GroupsTest, WhereNoTwoHaveRoomAndTimeIsOverOneRacesOnce) {
  const SimulatedClock clock;
  const AddBackend fast("fast", 1e-3);
  const AddBackend slow("slow", 2e-3);
  const auto seconds_of_race = [&](bool has_room) {
    MeasurementCache cache = MeasurementCache::Open({}).value();
    Decided decided(Adding(1), {&fast, &slow}, cache);
    EXPECT_TRUE(decided.Decide(decided.placement().Lying()));
    for (size_t kernel = 0; kernel < decided.placement().kernels.size(); ++kernel) EXPECT_TRUE(decided.MeasureAlone(kernel));
    const std::vector<Plan> singles = SinglesOf(decided);
    EXPECT_EQ(singles.size(), 2u);
    if (!has_room) decided.LimitWeights();
    decided.EndTime();
    const Clock::time_point start = Clock::now();
    const RaceOutcome race = decided.Race(singles).value();
    EXPECT_EQ(singles[race.winner].name, "fast");
    EXPECT_EQ(race.missing.size(), 1u);
    EXPECT_EQ(race.missing.front().reason, "time ended before it was ready");
    return Clock::SecondsSince(start);
  };
  EXPECT_LT(seconds_of_race(false), 1.2 * seconds_of_race(true));
}

TEST(VerdictTest, IsOfTheWeightsThatAreSaved) {
  const SimulatedClock clock;
  const LimitedBackend limited(1e-3);
  const AddBackend careful;
  MeasurementCache cache = MeasurementCache::Open({}).value();
  Decided first(Adding(1), {&limited, &careful}, cache);
  ASSERT_TRUE(first.Decide());
  const std::vector<Plan> plans = first.Plans().plans;
  const RaceOutcome right = first.Race(plans).value();
  EXPECT_EQ(first.placement().kernels[plans[right.winner].kernels.front().kernel].key.backend, "limited");
  EXPECT_TRUE(right.raced);
  EXPECT_LT(right.timings.front().difference.value(), 1e-4);

  // The same graph with other weights: everything is known by structure, but the verdict is not.
  Decided second(Adding(1000), {&limited, &careful}, cache);
  const std::vector<Plan> again = second.Plans().plans;
  EXPECT_EQ(second.pricer().counts().measured, 0u);
  const Result<RaceOutcome> other = second.Race(again);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_FALSE(other->raced);
  EXPECT_EQ(second.placement().kernels[again[other->winner].kernels.front().kernel].key.backend, "careful");

  // Alone it is refused.
  MeasurementCache of_its_own = MeasurementCache::Open({}).value();
  Decided only(Adding(1), {&limited}, of_its_own);
  ASSERT_TRUE(only.Decide());
  ASSERT_TRUE(only.Race(only.Plans().plans));
  Decided wrong(Adding(1000), {&limited}, of_its_own);
  const RaceOutcome refused = wrong.Race(wrong.Plans().plans).value();
  EXPECT_FALSE(refused.lowered);
  EXPECT_EQ(refused.objection.rfind("differs from the reference by", 0), 0u) << refused.objection;
}

std::vector<bool> ComparedApart(const Decided& decided, const MeasurementCache& cache) {
  std::vector<bool> compared;
  for (const PlacedKernel& kernel : decided.placement().kernels) {
    if (kernel.candidate != PlacedKernel::kNone) compared.push_back(cache.IsVerified(kernel.key).value());
  }
  return compared;
}

TEST(VerdictTest, WhileDecidingKernelsAreComparedApartOnlyWhereTheProgramDiffers) {
  const SimulatedClock clock;
  const LimitedBackend limited(1e-3);
  const AddBackend careful;
  MeasurementCache cache = MeasurementCache::Open({}).value();
  Decided right(Adding(1), {&limited, &careful}, cache);
  ASSERT_TRUE(right.Decide());
  EXPECT_EQ(ComparedApart(right, cache), (std::vector<bool>{false, false}));

  MeasurementCache of_wrong = MeasurementCache::Open({}).value();
  Decided wrong(Adding(1000), {&limited, &careful}, of_wrong);
  const Result<Decision> decision = wrong.Decide();
  ASSERT_TRUE(decision) << decision.error().message;
  size_t invalid = 0;
  for (size_t k = 0; k < wrong.evidence().size(); ++k) {
    if (wrong.evidence()[k].invalid_reason.empty()) continue;
    ++invalid;
    EXPECT_EQ(wrong.placement().kernels[k].key.backend, "limited");
    EXPECT_NE(wrong.evidence()[k].invalid_reason.find("differs from the reference"), std::string::npos);
  }
  EXPECT_EQ(invalid, 1u);
  EXPECT_EQ(decision->best.choices, wrong.Plans().plans.front().result.choices);
}

/// Roots of numbers below zero, which a comparison makes finite again.
class RootBackend : public NamedBackend {
 public:
  RootBackend() : NamedBackend("root", false, 1e-3) {}
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    for (const char* op : {"exp", "negative", "sqrt"})
      rules.patterns.push_back({std::string("root.") + op, pattern::CallOf(op, {pattern::Wildcard()}), {}});
    rules.patterns.push_back({"root.greater", pattern::CallOf("greater", {pattern::Wildcard(), pattern::IsConstant()}), {}});
    return rules;
  }
};

TEST(VerdictTest, WhileDecidingKernelsThatTheProgramDoesNotReachAreComparedApart) {
  const SimulatedClock clock;
  const RootBackend root;
  MeasurementCache cache = MeasurementCache::Open({}).value();
  const Expr x = MakeVar("x", TensorType{{1, 8}});
  Expr chain = x;
  for (const char* op : {"exp", "negative", "sqrt"}) chain = MakeCall(Operators().Find(op), {chain}).value();
  const Tensor zeros = Tensor::FromVector(TensorType{{1, 8}}, std::vector<float>(8, 0));
  const Expr function = MakeFunction({x}, MakeCall(Operators().Find("greater"), {chain, MakeConstant(zeros)}).value()).value();
  Decided decided(function, {&root}, cache);
  const Result<Decision> decision = decided.Decide();
  ASSERT_TRUE(decision) << decision.error().message;
  EXPECT_EQ(ComparedApart(decided, cache), std::vector<bool>(4, true));
}

TEST(VerdictTest, WhoDiffersIsBlamedBeforeAnybodyRaces) {
  const SimulatedClock clock;
  const LimitedBackend limited(1e-3);
  const AddBackend careful;
  MeasurementCache cache = MeasurementCache::Open({}).value();
  Decided known(Adding(1), {&limited, &careful}, cache);
  ASSERT_TRUE(known.Decide());

  Decided other(Adding(1000), {&limited, &careful}, cache);
  const std::vector<Plan> plans = other.Plans().plans;
  std::vector<std::string> blamed;
  const auto backend_of = [&](const Plan& plan) { return other.placement().kernels[plan.kernels.front().kernel].key.backend; };
  const auto blame = [&](bool finds) {
    return [&, finds](const Plan& plan, double /*excess*/) -> Result<bool> {
      blamed.push_back(backend_of(plan));
      return finds;
    };
  };
  const RaceOutcome ended = other.Race(plans, blame(true)).value();
  EXPECT_TRUE(ended.is_of_wrong_kernels);
  EXPECT_FALSE(ended.raced);
  EXPECT_EQ(blamed, std::vector<std::string>{"limited"});

  // Nothing of that was kept. Where no kernel is to blame, the plan as a whole is out.
  const RaceOutcome raced = other.Race(plans, blame(false)).value();
  EXPECT_FALSE(raced.is_of_wrong_kernels);
  EXPECT_TRUE(raced.raced);
  EXPECT_EQ(backend_of(plans[raced.winner]), "careful");
}

/// What rounding does is to take the reference that much of each value from itself.
RoundingEffect EffectOf(const ReferenceSample& sample, double difference) {
  const auto run = [&sample, difference](const std::vector<Tensor>&, const InterpreterOptions&) -> Result<std::vector<Tensor>> {
    const Tensor& expected = sample.expected[0];
    std::vector<float> less(expected.Values<float>().begin(), expected.Values<float>().end());
    for (float& value : less) value *= static_cast<float>(1 - difference);
    return std::vector<Tensor>{Tensor::FromVector(expected.type(), less)};
  };
  return {run, sample, 1};
}

GetRounding Given(RoundingEffect& effect) {
  return [&effect]() -> Result<RoundingEffect*> { return &effect; };
}

TEST(VerdictTest, WhatRoundingAloneExplainsIsExcusedWhereNoKernelIsWrong) {
  const SimulatedClock clock;
  const LimitedBackend limited(1e-3);
  MeasurementCache cache = MeasurementCache::Open({}).value();
  Decided known(Adding(1, 2), {&limited}, cache);
  ASSERT_TRUE(known.Decide());

  Decided other(Adding(1000, 2), {&limited}, cache);
  const std::vector<Plan> plans = other.Plans().plans;
  const auto blame = [](bool finds) { return [finds](const Plan&, double) -> Result<bool> { return finds; }; };
  RoundingEffect enough = EffectOf(other.sample(), 0.97);
  RoundingEffect too_little = EffectOf(other.sample(), 0.5);
  // It gives 100 in place of about 2000.
  EXPECT_TRUE(other.Race(plans, blame(true), Given(enough)).value().is_of_wrong_kernels);
  EXPECT_EQ(other.Race(plans, blame(false), Given(too_little)).value().objection.rfind("differs from the reference by 9.5e-01", 0), 0u);

  // The verdict was kept, so another cache.
  MeasurementCache of_its_own = MeasurementCache::Open({}).value();
  Decided decided(Adding(1, 2), {&limited}, of_its_own);
  ASSERT_TRUE(decided.Decide());
  Decided excused(Adding(1000, 2), {&limited}, of_its_own);
  RoundingEffect enough_again = EffectOf(excused.sample(), 0.97);
  const RaceOutcome race = excused.Race(excused.Plans().plans, blame(false), Given(enough_again)).value();
  EXPECT_NEAR(race.timings.front().difference.value(), 0.95, 0.01);
  EXPECT_EQ(race.rounding.rfind("rounding alone takes the reference 9.7e-01 of the largest value from itself", 0), 0u) << race.rounding;
  // The verdict is known, and says the same.
  EXPECT_EQ(excused.Race(excused.Plans().plans).value().rounding, race.rounding);
}

TEST(VerdictTest, AProgramOfOneKernelIsExcusedAsThatKernelIs) {
  const SimulatedClock clock;
  const LimitedBackend limited(1e-3);
  MeasurementCache cache = MeasurementCache::Open({}).value();
  Decided known(Adding(1), {&limited}, cache);
  ASSERT_TRUE(known.Decide());

  Decided other(Adding(1000), {&limited}, cache);
  RoundingEffect enough = EffectOf(other.sample(), 0.95);
  const auto ask = [](const Plan&, double) -> Result<bool> { return Fail("it was compared a second time"); };
  const Result<RaceOutcome> race = other.Race(other.Plans().plans, ask, Given(enough));
  ASSERT_TRUE(race) << race.error().message;
  EXPECT_FALSE(race->rounding.empty());
}

TEST(VerdictTest, WhileDecidingAProgramOfOneKernelIsExcusedAsThatKernelIs) {
  const SimulatedClock clock;
  const LimitedBackend limited(1e-3);
  for (const double difference : {0.95, 0.5}) {
    MeasurementCache cache = MeasurementCache::Open({}).value();
    Decided decided(Adding(1000), {&limited}, cache);
    RoundingEffect effect = EffectOf(decided.sample(), difference);
    decided.measurer().SetRounding(Given(effect));
    const bool is_excused = difference > 0.9;
    EXPECT_EQ(decided.Decide().has_value(), is_excused);
    EXPECT_EQ(ComparedApart(decided, cache), std::vector<bool>{false}) << "none was found right by itself";
    for (const Evidence& evidence : decided.evidence()) EXPECT_EQ(evidence.invalid_reason.empty(), is_excused) << evidence.invalid_reason;
  }
}

TEST(VerdictTest, WhoIsRefusedIsRemembered) {
  const SimulatedClock clock;
  const LimitedBackend limited(1e-3);
  const AddBackend careful;
  MeasurementCache cache = MeasurementCache::Open({}).value();
  Decided first(Adding(1), {&limited, &careful}, cache);
  ASSERT_TRUE(first.Decide());
  const size_t refused = first.Plans().plans.front().kernels.front().kernel;
  const std::string backend = first.placement().kernels[refused].key.backend;
  const auto found = first.measurer().Refuse(refused, "is not liked").value();
  EXPECT_EQ(found.first, refused);
  EXPECT_EQ(found.second.invalid_reason, "is not liked");

  Decided later(Adding(1), {&limited, &careful}, cache);
  ASSERT_TRUE(later.Decide());
  const size_t taken = later.Plans().plans.front().kernels.front().kernel;
  EXPECT_NE(later.placement().kernels[taken].key.backend, backend);
}

}  // namespace
}  // namespace collage
