#include "collage/pricing/pricer.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/fake_device.h"

namespace collage {
namespace {

class InstantKernel : public Kernel {
 public:
  InstantKernel() { inputs_.push_back({TensorType{{1}, DType::kFloat32}, Layout()}); }
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

Expr Nothing() {
  const Expr x = MakeVar("x", TensorType{{1}, DType::kFloat32});
  return MakeFunction({x}, x).value();
}

TEST(PricerTest, WhatOneProcessMeasuredAnotherFinds) {
  MeasurementCache cache = MeasurementCache::Open({}).value();
  const FakeBackend backend;
  Pricer first({}, cache, {});
  const MeasurementKey good = first.KeyOf(1, "fake", "1", "good");
  const MeasurementKey bad = first.KeyOf(1, "fake", "1", "bad");
  EXPECT_FALSE(first.Find(good).value().has_value());
  const Measurement measured = first.Measure(good, {Nothing(), backend, {"good", {}, {}}, first.device()}).value();
  EXPECT_FALSE(measured.samples.empty());
  EXPECT_EQ(first.Measure(bad, {Nothing(), backend, {"bad", {}, {}}, first.device()}).value().invalid_reason, "unsupported tile");
  EXPECT_EQ(first.counts().measured, 2u);
  EXPECT_EQ(first.counts().rejected, 1u);

  Pricer second({}, cache, {});
  EXPECT_EQ(second.Find(good).value()->samples, measured.samples);
  EXPECT_EQ(second.Find(good).value()->anchors, measured.anchors);
  EXPECT_EQ(second.Find(bad).value()->invalid_reason, "unsupported tile");
  EXPECT_EQ(second.counts().measured, 0u);
  EXPECT_EQ(second.counts().cached, 3u);
  EXPECT_FALSE(second.Find(second.KeyOf(1, "fake", "2", "good")).value()) << "another version of the library is another price";
}

/// Takes two at once; each takes as many seconds as the number in the name of its variant.
class TwoAtOnce : public KernelTimer {
 public:
  Result<Measurement> Measure(const KernelJob& job) override { return Measurement{{std::stod(job.variant.name)}, {}, {1}}; }
  Result<std::vector<Measurement>> MeasureEach(std::span<const KernelJob> jobs) override {
    groups.push_back(jobs.size());
    return KernelTimer::MeasureEach(jobs);
  }
  [[nodiscard]] size_t AtOnce() const override { return 2; }
  Result<double> Difference(const KernelJob&) override { return 0; }
  Status CheckDevice(const Backend&, const Device&) override { return {}; }
  std::vector<size_t> groups;
};

TEST(PricerTest, SeveralGoToTheTimerInGroupsUntilItIsTimeToStop) {
  MeasurementCache cache = MeasurementCache::Open({}).value();
  const FakeBackend backend;
  TwoAtOnce timer;
  Pricer pricer({}, cache, {}, &timer);
  EXPECT_EQ(pricer.AtOnce().value(), 2u);
  const Expr function = Nothing();
  std::vector<Variant> variants;
  std::vector<MeasurementKey> keys;
  for (const char* name : {"1", "2", "3", "4", "5"}) {
    variants.push_back({name, {}, {}});
    keys.push_back(pricer.KeyOf(1, "fake", "1", name));
  }
  std::vector<KeyedKernel> kernels;
  for (size_t i = 0; i < keys.size(); ++i) kernels.push_back({keys[i], {function, backend, variants[i], pricer.device()}});
  const auto found = pricer.MeasureEach(kernels, [&] { return timer.groups.size() == 2; }).value();
  EXPECT_EQ(timer.groups, (std::vector<size_t>{2, 2}));
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].has_value(), i < 4) << i;
    ASSERT_EQ(cache.Find(keys[i]).value().has_value(), i < 4) << i;
    if (!found[i]) continue;
    EXPECT_EQ(cache.Find(keys[i]).value()->samples, std::vector<double>{static_cast<double>(i + 1)});
  }
  EXPECT_EQ(pricer.MeasureEach(std::span(kernels).last(1)).value()[0]->samples, std::vector<double>{5});
  EXPECT_EQ(timer.groups.back(), 1u);
}

/// Takes the first of those that it is given by itself.
class FirstApart : public TwoAtOnce {
 public:
  [[nodiscard]] size_t Together(std::span<const KernelJob> jobs) const override { return jobs.front().variant.name == "1" ? 1 : 2; }
};

TEST(PricerTest, WhatTheTimerDoesNotTakeTogetherIsStoppedApart) {
  MeasurementCache cache = MeasurementCache::Open({}).value();
  const FakeBackend backend;
  FirstApart timer;
  Pricer pricer({}, cache, {}, &timer);
  const Expr function = Nothing();
  const std::vector<Variant> variants = {{"1", {}, {}}, {"2", {}, {}}};
  const std::vector<MeasurementKey> keys = {pricer.KeyOf(1, "fake", "1", "1"), pricer.KeyOf(1, "fake", "1", "2")};
  const std::vector<KeyedKernel> kernels = {{keys[0], {function, backend, variants[0], pricer.device()}},
                                            {keys[1], {function, backend, variants[1], pricer.device()}}};
  const auto found = pricer.MeasureEach(kernels, [&] { return !timer.groups.empty(); }).value();
  EXPECT_EQ(timer.groups, std::vector<size_t>{1});
  EXPECT_TRUE(found[0]);
  EXPECT_FALSE(found[1]);
}

TEST(PricerTest, AWrongKernelStaysInvalid) {
  MeasurementCache cache = MeasurementCache::Open({}).value();
  Pricer pricer({}, cache, {});
  const MeasurementKey key = pricer.KeyOf(1, "fake", "1", "good");
  const FakeBackend backend;
  const KeyedKernel kernel{key, {Nothing(), backend, {"good", {}, {}}, pricer.device()}};
  ASSERT_TRUE(pricer.Measure(key, kernel.kernel));
  ASSERT_TRUE(pricer.MarkInvalid(kernel, "differs from the reference"));
  EXPECT_EQ(Pricer({}, cache, {}).Find(key).value()->invalid_reason, "differs from the reference");
}

class TimerWithoutDevice : public KernelTimer {
 public:
  Result<Measurement> Measure(const KernelJob&) override { return Measurement{{}, "does not run"}; }
  Result<double> Difference(const KernelJob&) override { return Fail("does not run"); }
  Status CheckDevice(const Backend&, const Device&) override { return Fail("the device is gone"); }
};

TEST(PricerTest, NothingIsHeldAgainstAKernelWhoseDeviceIsGone) {
  MeasurementCache cache = MeasurementCache::Open({}).value();
  TimerWithoutDevice timer;
  Pricer pricer({}, cache, {}, &timer);
  const FakeBackend backend;
  const MeasurementKey key = pricer.KeyOf(1, "fake", "1", "good");
  const KeyedKernel kernel{key, {Nothing(), backend, {"good", {}, {}}, pricer.device()}};
  EXPECT_EQ(pricer.Measure(key, kernel.kernel).error().message, "the device is gone");
  EXPECT_EQ(pricer.MeasureEach({&kernel, 1}).error().message, "the device is gone");
  EXPECT_EQ(pricer.MarkInvalid(kernel, "failed inside a whole plan").error().message, "the device is gone");
  EXPECT_FALSE(cache.Find(key).value());
}

TEST(PricerTest, AConversionIsTimedLikeAKernelAndKept) {
  MeasurementCache cache = MeasurementCache::Open({}).value();
  Pricer pricer({}, cache, {});
  const TensorType type{{1, 64, 16, 16}, DType::kFloat32};
  const Measurement measured = pricer.MeasureConversion(type, {Layout()}, {Layout::Of("aBcd16b")}).value();
  ASSERT_FALSE(measured.samples.empty());
  const MeasurementKey key = pricer.KeyOfConversion(type, {Layout()}, {Layout::Of("aBcd16b")});
  EXPECT_EQ(Pricer({}, cache, {}).Find(key).value()->samples, measured.samples);
}

TEST(PricerTest, AConversionIsTimedWhereAPlanDoesIt) {
  MeasurementCache cache = MeasurementCache::Open({}).value();
  Pricer pricer({}, cache, {});
  const TensorType type{{1, 64, 4, 4}, DType::kFloat32};
  const Layout last = Layout::Of("acdb");
  const auto device = std::make_shared<FakeDevice>();
  const auto other = std::make_shared<FakeDevice>(1);
  const std::vector<std::pair<TensorPlace, TensorPlace>> ways = {{{Layout(), device}, {last, device}},
                                                                 {{Layout(), nullptr}, {last, device}},
                                                                 {{last, device}, {Layout(), nullptr}},
                                                                 {{last, other}, {Layout(), device}}};
  for (const bool transposes : {true, false}) {
    device->transposes = transposes;
    for (const auto& [from, to] : ways) {
      const bool within = from.context == to.context;
      device->transpositions = device->copies_in = device->copies_out = 0;
      const Measurement measured = pricer.MeasureConversion(type, from, to).value();
      EXPECT_EQ(measured.invalid_reason, "");
      ASSERT_FALSE(measured.samples.empty());
      EXPECT_EQ(device->transpositions > 0, transposes);
      // Beside the buffers, which come in once.
      EXPECT_EQ(device->copies_in + device->copies_out > 2, !(within && transposes));
    }
  }
}

}  // namespace
}  // namespace collage
