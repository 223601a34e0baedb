// Relu in several variants, each of which sleeps for the time that is set for it: what is measured is known, and a machine of two
// processors measures for many.

#include <chrono>
#include <cstdlib>
#include <thread>

#include "collage/backend/entry.h"
#include "collage/ir/op_sequence.h"

namespace collage {
namespace {

double Setting(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::atof(value) : 0;
}

void SleepMilliseconds(double milliseconds) { std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds)); }

class SleepingRelu final : public Kernel {
 public:
  SleepingRelu(const TensorType& type, double milliseconds) : milliseconds_(milliseconds) {
    inputs_.push_back({type, Layout()});
    outputs_.push_back({type, Layout()});
  }
  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* /*workspace*/) override {
    SleepMilliseconds(milliseconds_);
    const auto* x = static_cast<const float*>(inputs[0]);
    for (int64_t i = 0; i < inputs_[0].type.ElementCount(); ++i) static_cast<float*>(outputs[0])[i] = x[i] > 0 ? x[i] : 0;
    return {};
  }

 private:
  double milliseconds_;
};

class SimulatedBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "simulated"; }
  [[nodiscard]] Presence Probe(const Device& /*device*/) const override { return Presence::Version("1"); }

  [[nodiscard]] BackendRules Rules() const override {
    using namespace pattern;
    BackendRules rules;
    rules.patterns.push_back({"simulated.relu", CallOf("nn.relu", {Wildcard()}), [](const Match&) { return Verdict::Accept(); }});
    return rules;
  }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& /*device*/) const override {
    std::vector<Variant> variants;
    if (!ToOpSequence(function)) return variants;
    for (const char* name : {"1", "2", "3", "4"}) variants.push_back({name, {Layout()}, {Layout()}});
    return variants;
  }

  /// Variant "2" runs for twice COLLAGE_SIMULATED_RUN_MS, and is compiled for COLLAGE_SIMULATED_COMPILE_MS.
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& /*device*/,
                                                        const Variant& variant) const override {
    const OpSequence sequence = COLLAGE_TRY(ToOpSequence(function));
    SleepMilliseconds(Setting("COLLAGE_SIMULATED_COMPILE_MS"));
    return std::make_unique<SleepingRelu>(sequence.values[sequence.parameters[0]].type,
                                          Setting("COLLAGE_SIMULATED_RUN_MS") * std::atof(variant.name.c_str()));
  }
};

}  // namespace
}  // namespace collage

COLLAGE_BACKEND(collage::SimulatedBackend)
