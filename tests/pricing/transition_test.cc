#include "collage/pricing/transition.h"

#include <gtest/gtest.h>

#include "tests/support/simulated_clock.h"

namespace collage {
namespace {

/// What ran last, as a pool of threads would know it.
std::string& LastBackend() {
  static std::string name;
  return name;
}

/// Copies what is not negative; takes 50 us, and 200 us more right after a kernel of another pool.
class PoolKernel : public Kernel {
 public:
  PoolKernel(const TensorType& type, std::string name, std::string pool)
      : name_(std::move(name)), pool_(std::move(pool)), bytes_(type.ByteCount()) {
    inputs_.push_back({type, Layout()});
    outputs_.push_back({type, Layout()});
  }
  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void*) override {
    const auto* in = static_cast<const float*>(inputs[0]);
    auto* out = static_cast<float*>(outputs[0]);
    for (size_t i = 0; i < bytes_ / sizeof(float); ++i) out[i] = in[i] > 0 ? in[i] : 0;
    if (name_ == "wrong") out[0] += 1;
    SimulatedClock::Pass(LastBackend().empty() || LastBackend() == pool_ ? 50e-6 : 250e-6);
    LastBackend() = pool_;
    return {};
  }

 private:
  std::string name_;
  std::string pool_;
  size_t bytes_;
};

class PoolBackend : public Backend {
 public:
  PoolBackend(std::string name, std::string pool) : name_(std::move(name)), pool_(std::move(pool)) {}
  [[nodiscard]] std::string_view Name() const override { return name_; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override { return {}; }
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device&) const override {
    if (!IsCallOf(function.body, "nn.relu")) return {};
    return {{"only", {Layout()}, {Layout()}}};
  }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device&, const Variant&) const override {
    ++compiled;
    return std::make_unique<PoolKernel>(*function.body->type().AsTensor(), name_, pool_);
  }
  mutable int compiled = 0;

 private:
  std::string name_;
  std::string pool_;
};

MeasureOptions Warm() {
  MeasureOptions options;
  options.eviction_bytes = 0;
  return options;
}

TEST(TransitionTest, AnotherPoolCostsMoreAndTheSameNothing) {
  const SimulatedClock clock;
  MeasurementCache cache = MeasurementCache::Open({}).value();
  const PoolBackend one("one", "openmp");
  const PoolBackend two("two", "tbb");
  const PoolBackend three("three", "openmp");
  const std::vector<TransitionBackend> backends = {{&one, "1"}, {&two, "1"}, {&three, "1"}};
  Pricer pricer({}, cache, Warm());
  const TransitionCosts costs = MeasureTransitions(backends, pricer, {}).value();
  EXPECT_EQ(costs.backends, (std::vector<std::string>{"one", "two", "three"}));
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 0}, {1, 2}, {2, 1}}) {
    EXPECT_NEAR(costs.pairs[from][to].cost.ToMicroseconds(), 200, 5) << from << " " << to;
  }
  for (const auto& [from, to] : {std::pair{0, 0}, {0, 2}, {1, 1}, {2, 0}, {2, 2}})
    EXPECT_LT(costs.pairs[from][to].cost.ToMicroseconds(), 5);
  EXPECT_EQ(costs.Matrix()[1][0], costs.pairs[1][0].cost);

  // Another process finds all of it.
  const int compiled = one.compiled;
  Pricer again({}, cache, Warm());
  again.AllowOnlyCached();
  const TransitionCosts found = MeasureTransitions(backends, again, {}).value();
  EXPECT_EQ(found.Matrix(), costs.Matrix());
  EXPECT_EQ(one.compiled, compiled);
  // Other backends, or another version, is another measurement.
  const Result<TransitionCosts> missed = MeasureTransitions({{&one, "2"}, {&two, "1"}}, again, {});
  ASSERT_FALSE(missed.has_value());
  EXPECT_NE(missed.error().message.find("not in the cache"), std::string::npos);
}

TEST(TransitionTest, AWrongOrAbsentKernelHasAReasonAndCostsNothing) {
  const SimulatedClock clock;
  MeasurementCache cache = MeasurementCache::Open({}).value();
  const PoolBackend right("right", "openmp");
  const PoolBackend wrong("wrong", "tbb");
  Pricer pricer({}, cache, Warm());
  const TransitionCosts costs = MeasureTransitions({{&right, "1"}, {&wrong, "1"}}, pricer, {}).value();
  EXPECT_EQ(costs.reasons, (std::vector<std::string>{"", "is wrong"}));
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 0}, {1, 1}}) EXPECT_EQ(costs.pairs[from][to].cost, Cost());
  EXPECT_GT(costs.alone_us[0], 40);
}

TEST(TransitionTest, ZeroesAreNoMatrix) {
  TransitionCosts costs;
  costs.pairs.assign(2, std::vector<Transition>(2));
  EXPECT_TRUE(costs.Matrix().empty());
  costs.pairs[0][1].cost = Cost::Microseconds(3);
  EXPECT_EQ(costs.Matrix()[0][1], Cost::Microseconds(3));
  EXPECT_EQ(costs.Matrix()[1][0], Cost());
}

}  // namespace
}  // namespace collage
