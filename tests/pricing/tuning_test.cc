#include "collage/pricing/tuning.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace collage {
namespace {

const std::vector<TuningParameter> kParameters = {{"rows", {0, 1, 2, 4}}, {"columns", {0, 1, 2}}, {"tasks", {4, 1, 16}}};

std::vector<double> Times(double us) { return std::vector<double>(9, us); }

/// 100 us less what each value brings; rows 2 with columns 1 cannot be compiled.
std::vector<double> Landscape(const TuningChoice& choice) {
  if (choice[0] == 2 && choice[1] == 1) return {};
  const std::vector<std::vector<double>> gains = {{0, -5, 10, 20}, {0, 15, -30}, {0, 1, 8}};
  double us = 100;
  for (size_t p = 0; p < choice.size(); ++p) us -= gains[p][choice[p]];
  return Times(us);
}

/// Prices as a cache would give them; counts what had to be measured.
struct Prices {
  std::map<TuningChoice, std::vector<double>> known = {};
  std::vector<TuningChoice> measured = {};
  size_t die_after = SIZE_MAX;

  Result<std::vector<double>> operator()(const TuningChoice& choice) {
    if (const auto at = known.find(choice); at != known.end()) return at->second;
    if (measured.size() == die_after) return Fail("killed");
    measured.push_back(choice);
    return known[choice] = Landscape(choice);
  }
};

Result<TuningOutcome> TuneWith(Prices& prices, const TuningOptions& options = {}, size_t stop_after = SIZE_MAX) {
  return TuneSchedule(
      kParameters, Times(100), options, [&](const TuningChoice& choice) { return prices(choice); },
      [&] { return prices.measured.size() >= stop_after; });
}

TEST(TuneScheduleTest, FindsTheBestAndAsksForNothingTwice) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Prices prices;
    const TuningOutcome outcome = TuneWith(prices, {.seed = seed}).value();
    EXPECT_EQ(outcome.choice, (TuningChoice{3, 1, 2})) << "seed " << seed;
    EXPECT_EQ(outcome.times, Times(57));
    EXPECT_TRUE(outcome.finished);
    EXPECT_EQ(outcome.trials, prices.measured.size());
    EXPECT_EQ(std::set(prices.measured.begin(), prices.measured.end()).size(), prices.measured.size());
  }
}

TEST(TuneScheduleTest, TheSeedDecidesTheOrder) {
  std::set<std::vector<TuningChoice>> orders;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Prices once;
    Prices again;
    ASSERT_TRUE(TuneWith(once, {.seed = seed}));
    ASSERT_TRUE(TuneWith(again, {.seed = seed}));
    EXPECT_EQ(once.measured, again.measured);
    orders.insert(once.measured);
  }
  EXPECT_GT(orders.size(), 5u);
}

TEST(TuneScheduleTest, WhoWasKilledGoesOnWhereHeWas) {
  Prices whole;
  const TuningOutcome expected = TuneWith(whole, {.seed = 7}).value();
  for (size_t after = 0; after < whole.measured.size(); ++after) {
    Prices prices{.die_after = after};
    ASSERT_FALSE(TuneWith(prices, {.seed = 7}).has_value());
    Prices resumed{.known = prices.known};
    const TuningOutcome outcome = TuneWith(resumed, {.seed = 7}).value();
    EXPECT_EQ(outcome.choice, expected.choice);
    EXPECT_EQ(resumed.measured.size() + after, whole.measured.size()) << "measured again, killed after " << after;
  }
}

TEST(TuneScheduleTest, ABudgetIsKeptAndTheOutcomeNeverWorseThanTheTemplate) {
  for (size_t stop = 0; stop < 12; ++stop) {
    Prices prices;
    const TuningOutcome outcome = TuneWith(prices, {.seed = stop}, stop).value();
    EXPECT_LE(prices.measured.size(), stop);
    EXPECT_LE(outcome.times, Times(100));
    if (stop < 5) {
      EXPECT_FALSE(outcome.finished);
    }
    Prices few;
    EXPECT_LE(TuneWith(few, {.most_trials = stop})->trials, stop);
  }
  // Nothing better is there.
  const TuningOutcome outcome =
      TuneSchedule(
          kParameters, Times(1), {}, [](const TuningChoice& choice) { return Landscape(choice); }, [] { return false; })
          .value();
  EXPECT_EQ(outcome.choice, (TuningChoice{0, 0, 0}));
  EXPECT_EQ(outcome.times, Times(1));
}

TEST(TuneScheduleTest, ALuckyPercentIsNoGain) {
  const TuningOutcome outcome = TuneSchedule(
                                    kParameters, Times(100), {}, [](const TuningChoice&) { return Times(99.5); }, [] { return false; })
                                    .value();
  EXPECT_EQ(outcome.choice, (TuningChoice{0, 0, 0}));
}

TEST(TuneScheduleTest, WaveringSamplesAreNoGain) {
  // A median of 80 against 100, and samples of which every second one says the opposite.
  const std::vector<double> wavering = {80, 130, 80, 130, 80, 130, 80, 130, 80};
  const TuningOutcome outcome = TuneSchedule(
                                    kParameters, Times(100), {}, [&](const TuningChoice&) { return wavering; }, [] { return false; })
                                    .value();
  EXPECT_EQ(outcome.choice, (TuningChoice{0, 0, 0}));
}

TEST(TuningRecordTest, ReadsBackAndFitsItsParametersOnly) {
  MeasurementCache cache = MeasurementCache::Open({}).value();
  const MeasurementKey key{1, "native", "1", "default", "cpu", 2};
  EXPECT_FALSE(FindTuning(cache, key, kParameters).value().has_value());
  ASSERT_TRUE(StoreTuning(cache, key, {{3, 0, 2}, false}));
  const std::optional<TuningRecord> record = FindTuning(cache, key, kParameters).value();
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->choice, (TuningChoice{3, 0, 2}));
  EXPECT_FALSE(record->finished);
  ASSERT_TRUE(StoreTuning(cache, key, {{3, 0, 2}, true}));
  EXPECT_TRUE(FindTuning(cache, key, kParameters).value()->finished);
  EXPECT_FALSE(FindTuning(cache, key, {kParameters[0]}).value().has_value());
  EXPECT_FALSE(FindTuning(cache, key, {kParameters[1], kParameters[1], kParameters[1]}).value().has_value())
      << "position 3 of three values";
  EXPECT_FALSE(cache.Find(key).value().has_value()) << "no price";
}

class TunableBackend : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "tunable"; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override { return {}; }
  [[nodiscard]] std::vector<Variant> Variants(const Function&, const Device&) const override {
    return {{"default", {}, {}}, {"default/acdb", {}, {}}, {"fixed", {}, {}}};
  }
  [[nodiscard]] std::vector<TuningParameter> Tuning(const Function&, const Device&, const Variant& variant) const override {
    return variant.name == "fixed" ? std::vector<TuningParameter>() : kParameters;
  }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function&, const Device&, const Variant&) const override {
    return Fail("no");
  }
};

TEST(TunedVariantTest, NamesSayWhatDiffers) {
  const Variant base{"default/acdb", {}, {}};
  EXPECT_EQ(TunedVariant(base, kParameters, {0, 0, 0}).name, "default/acdb");
  const std::string name = TunedVariant(base, kParameters, {2, 0, 1}).name;
  EXPECT_EQ(name, "default/acdb@rows=2,tasks=1");
  EXPECT_EQ(TemplateName(name), "default/acdb");
  EXPECT_EQ(TunedValues(name), (std::map<std::string, int>{{"rows", 2}, {"tasks", 1}}));
  EXPECT_TRUE(TunedValues("default").empty());
  EXPECT_TRUE(TunedValues("default@,=,x,y=z,").empty());
}

TEST(TunedVariantTest, AreFoundByTheirNames) {
  const Function function{{}, MakeVar("x", TensorType{{1}}), {}, {}};
  const TunableBackend backend;
  const auto find = [&](const std::string& name) { return FindVariant(backend, function, {}, name); };
  EXPECT_EQ(find("default/acdb")->name, "default/acdb");
  EXPECT_EQ(find("default/acdb@rows=4,columns=2")->name, "default/acdb@rows=4,columns=2");
  for (const char* name : {"default@rows=3", "default@depth=1", "default@", "fixed@rows=1", "other@rows=1", "other"})
    EXPECT_FALSE(find(name).has_value()) << name;
  EXPECT_NE(find("other").error().message.find("default, default/acdb, fixed"), std::string::npos);
}

}  // namespace
}  // namespace collage
