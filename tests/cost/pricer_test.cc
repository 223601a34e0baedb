#include "collage/cost/pricer.h"

#include <gtest/gtest.h>

namespace collage {
namespace {

class InstantKernel : public Kernel {
 public:
  Status Run(std::span<const void* const>, std::span<void* const>, void*) override { return {}; }
};

// Two variants, one of which never compiles.
class FakeBackend : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "fake"; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override { return {}; }
  [[nodiscard]] std::vector<Variant> Variants(const Function&, const Device&) const override { return {{"good", {}, {}}, {"bad", {}, {}}}; }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function&, const Device&, const Variant& variant) const override {
    ++compiled;
    if (variant.name == "bad") return Fail("unsupported tile");
    return std::make_unique<InstantKernel>();
  }
  mutable int compiled = 0;
};

TEST(PricerTest, EqualFunctionsArePricedOnceInAProcessAndThroughTheCache) {
  MeasurementCache cache = MeasurementCache::Open({}).value();
  const FakeBackend backend;
  const Function function;
  Pricer pricer({}, cache, {});
  const std::vector<PricedVariant> first = pricer.Price(1, function, backend, "1").value();
  ASSERT_EQ(first.size(), 2u);
  EXPECT_TRUE(first[0].cost.IsKnown());
  EXPECT_TRUE(first[1].cost.IsInvalid());
  EXPECT_EQ(first[1].invalid_reason, "unsupported tile");
  EXPECT_EQ(pricer.Price(1, function, backend, "1").value()[0].cost, first[0].cost);
  EXPECT_EQ(backend.compiled, 2);

  Pricer second_process({}, cache, {});
  EXPECT_EQ(second_process.Price(1, function, backend, "1").value()[0].cost, first[0].cost);
  EXPECT_EQ(backend.compiled, 2);
  EXPECT_EQ(second_process.counts().measured, 0u);
  EXPECT_EQ(second_process.counts().cached, 2u);

  Pricer third_process({}, cache, {});
  ASSERT_TRUE(third_process.Price(1, function, backend, "2"));
  EXPECT_EQ(backend.compiled, 4) << "another version of the library is another price";
}

TEST(PricerTest, AWrongKernelStaysInvalid) {
  MeasurementCache cache = MeasurementCache::Open({}).value();
  const FakeBackend backend;
  Pricer pricer({}, cache, {});
  const MeasurementKey key = pricer.Price(1, Function{}, backend, "1").value()[0].key;
  ASSERT_TRUE(pricer.MarkInvalid(key, "differs from the reference"));
  EXPECT_TRUE(pricer.Price(1, Function{}, backend, "1").value()[0].cost.IsInvalid());
  Pricer again({}, cache, {});
  EXPECT_EQ(again.Price(1, Function{}, backend, "1").value()[0].invalid_reason, "differs from the reference");
}

TEST(PricerTest, ConversionsBetweenEqualLayoutsAreFree) {
  MeasurementCache cache = MeasurementCache::Open({}).value();
  Pricer pricer({}, cache, {});
  const TensorType type{{1, 64, 16, 16}, DType::kFloat32};
  EXPECT_EQ(pricer.PriceConversion(type, Layout(), Layout()).value(), Cost());
  const Cost cost = pricer.PriceConversion(type, Layout(), Layout::Of("aBcd16b")).value();
  EXPECT_TRUE(cost.IsKnown());
  EXPECT_GT(cost, Cost());
  EXPECT_EQ(pricer.PriceConversion(type, Layout(), Layout::Of("aBcd16b")).value(), cost);
}

}  // namespace
}  // namespace collage
