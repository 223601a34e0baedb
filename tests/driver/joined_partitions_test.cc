#include <gtest/gtest.h>

#include "collage/ir/op_sequence.h"
#include "tests/driver/decided.h"

namespace collage {
namespace {

/// A graph compiler of whole regions.
class Compiler : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "compiler"; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override {
    return {BackendRules::Style::kPredicate, {}, [](const Expr&) { return Verdict::Accept(); }};
  }
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device&) const override {
    constexpr size_t kMostOperators = 6;
    if (ToOpSequence(function)->steps.size() > kMostOperators) return {};
    return {{"only", {Layout()}, {Layout()}}};
  }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    return CompileTimed(function, device, variant, [] { return 1e-3; });
  }
};

/// So long that region cuts offer it only whole, in nine large pieces and their runs, and in pieces of an operator or two.
std::string LongChain() {
  std::string text = "fn (%x: Tensor[(1, 8), float32]) {\n";
  for (int i = 0; i < 99; ++i) {
    const std::string input = i == 0 ? "%x" : "%" + std::to_string(i - 1);
    text += "  %" + std::to_string(i) + " = " + (i % 2 == 0 ? "nn.relu(" : "sigmoid(") + input + ");\n";
  }
  return text + "  nn.relu(%98)\n}";
}

TEST(JoinedPartitionsTest, NeighboursOfTheBestPlanBecomeCandidates) {
  const SimulatedClock clock;
  const Compiler compiler;
  MeasurementCache cache = MeasurementCache::Open({}).value();
  Decided decided(Parsed(LongChain()), {&compiler}, cache);
  const Decision decision = decided.Decide().value();
  const Plan plan = MakePlan(decided.placement(), "searched", decision.best);
  const std::vector<PricedCandidate> joined = JoinedPartitions(decided.placement(), plan);
  ASSERT_FALSE(joined.empty());
  const size_t kernels = decided.placement().kernels.size();
  const PlacementPointer extended = Extend(decided.placement(), {joined, {}}, decided.pricer()).value();
  EXPECT_EQ(extended->candidates.size(), decided.placement().candidates.size() + joined.size());
  for (size_t kernel = 0; kernel < kernels; ++kernel)
    EXPECT_EQ(extended->kernels[kernel].key, decided.placement().kernels[kernel].key) << "numbers stay";
}

}  // namespace
}  // namespace collage
