#include <gtest/gtest.h>

#include "collage/driver/context_pricing.h"
#include "collage/ir/parse.h"
#include "collage/op/table.h"
#include "tests/driver/timed_kernel.h"

namespace collage {
namespace {

constexpr double kAlone = 2e-3;
constexpr double kHandOver = 1.5e-3;

/// The backend whose pool of threads worked last in this process.
const void* worked_last = nullptr;

/// Takes part with some operators, and can run any, in 2 ms, and 1.5 ms more right after a kernel of another backend's pool.
class PoolBackend : public Backend {
 public:
  PoolBackend(std::string name, std::vector<std::string> ops) : name_(std::move(name)), ops_(std::move(ops)) {}
  [[nodiscard]] std::string_view Name() const override { return name_; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    for (const std::string& op : ops_) rules.patterns.push_back({name_ + "." + op, pattern::CallOf(op, {pattern::Wildcard()}), {}});
    return rules;
  }
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device&) const override {
    // Of the trivial kernels the one without arithmetic to speak of.
    if (function.parameters.size() != 1 || IsCallOf(function.body, "nn.dense") || IsCallOf(function.body, "nn.conv2d")) return {};
    return {{"only", {Layout()}, {Layout()}}};
  }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    return CompileTimed(function, device, variant, [this] {
      const void* before = std::exchange(worked_last, this);
      return before == nullptr || before == this ? kAlone : kAlone + kHandOver;
    });
  }

 private:
  std::string name_;
  std::vector<std::string> ops_;
};

constexpr const char* kProgram = "fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); %1 = sigmoid(%0); %2 = nn.relu(%1); sigmoid(%2) }";

/// Four kernels of alternating backends: three hand-overs, charged once each, before as well as after pricing in context.
TEST(TransitionChargeTest, AHandOverIsPaidOnce) {
  const SimulatedClock clock;
  const PoolBackend one("one", {"nn.relu"});
  const PoolBackend two("two", {"sigmoid"});
  const auto target = [](const PoolBackend& backend) {
    return PlacementTarget{{&backend, "1", BackendRules::Style::kPattern}, backend.Rules(), "cpu -compiler=" + std::string(backend.Name())};
  };
  MeasurementCache cache = MeasurementCache::Open({}).value();
  MeasureOptions warm;
  warm.eviction_bytes = 0;
  Pricer pricer({}, cache, warm);
  CompileOptions options;
  Placement placement =
      Placement::Create(ParseExpr(kProgram, Operators()).value().expr, {target(one), target(two)}, pricer, options.progress).value();
  LowerOptions lower;
  lower.find_backend = [&](const std::string& name) -> Result<const Backend*> { return name == "one" ? &one : &two; };

  constexpr double kExpected = 4 * kAlone + 3 * kHandOver;
  const Plan alone = placement.Search().value();
  EXPECT_EQ(alone.result.partitions, 4u);
  EXPECT_NEAR(alone.result.cost.ToSeconds(), kExpected, 1e-4);
  // In the network the first kernel, too, comes after another pool: that of the run before.
  ASSERT_TRUE(PriceInContext(placement, lower, options));
  placement.AllowOnlyKnownInContext(true);
  const Plan plan = placement.Search().value();
  EXPECT_GE(placement.RoundsInContext(plan), 3u);
  EXPECT_NEAR(plan.result.cost.ToSeconds(), kExpected + kHandOver, 1e-4);
}

}  // namespace
}  // namespace collage
