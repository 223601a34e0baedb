#include "collage/driver/kept_decision.h"

#include <gtest/gtest.h>

#include "tests/driver/decided.h"
#include "tests/driver/host_library.h"
#include "tests/support/simulated_clock.h"

namespace collage {
namespace {

class KeptDecisionTest : public testing::Test {
 protected:
  KeptDecisionTest() {
    EXPECT_GE(placement_->kernels.size(), 3u);
    store_.emplace(pricer_, placement_->ContextHash());
  }

  void PriceAlone(size_t kernel) { ASSERT_TRUE(cache_.Store(placement_->kernels[kernel].key, {{1e-3, 2e-3}, {}, {1e-3, 1e-3}})); }
  void AddRound(size_t kernel, double anchor_seconds) {
    ASSERT_TRUE(store_->Add(placement_->kernels[kernel], {{1e-3, anchor_seconds}, 7, 0}));
  }

  SimulatedClock clock_;
  HostLibrary library_{1e-4};
  MeasurementCache cache_ = MeasurementCache::Open({}).value();
  Pricer pricer_{Device{}, cache_, {}};
  PlacementPointer placement_ = MakePlacement(Parsed("fn (%x: Tensor[(1, 8), float32]) { %0 = nn.relu(%x); %1 = sigmoid(%0); tanh(%1) }"),
                                              {TargetOf(library_)}, pricer_, {})
                                    .value();
  std::optional<EvidenceStore> store_;
};

TEST_F(KeptDecisionTest, WhatWasMeasuredSinceIsNotLoadedAndWhatBecameInvalidIs) {
  PriceAlone(0);
  AddRound(0, 1e-3);
  AddRound(1, 2e-3);
  const std::vector<Evidence> before = store_->Load(*placement_).value();
  const KnownThen known = WhatIsKnown(before);
  EXPECT_EQ(known, (KnownThen{{0, {true, 1}}, {1, {false, 1}}}));

  PriceAlone(1);
  PriceAlone(2);
  for (const size_t kernel : {0, 1, 2}) AddRound(kernel, 3e-3);
  store_->LimitTo(known);
  std::vector<Evidence> after = store_->Load(*placement_).value();
  ASSERT_EQ(after.size(), before.size());
  for (size_t kernel = 0; kernel < after.size(); ++kernel) {
    EXPECT_EQ(after[kernel].alone, before[kernel].alone) << kernel;
    ASSERT_EQ(after[kernel].in_program.size(), before[kernel].in_program.size()) << kernel;
    for (size_t i = 0; i < after[kernel].in_program.size(); ++i)
      EXPECT_EQ(after[kernel].in_program[i].row, before[kernel].in_program[i].row) << kernel;
  }

  ASSERT_TRUE(cache_.Store(placement_->kernels[0].key, {{}, "crashes"}));
  ASSERT_TRUE(cache_.Store(placement_->kernels[2].key, {{}, "differs"}));
  after = store_->Load(*placement_).value();
  EXPECT_EQ(after[0].invalid_reason, "crashes");
  EXPECT_EQ(after[2].invalid_reason, "differs");
  store_->LimitTo(std::nullopt);
  EXPECT_EQ(store_->Load(*placement_).value()[1].in_program.size(), 2u);
}

TEST_F(KeptDecisionTest, IsFoundAsItWasStored) {
  EXPECT_FALSE(FindDecision(pricer_, 5).value().has_value());
  const KeptDecision decision{12.5, {{{{0, 0}}, {}}}, {{3, {true, 0}}, {0, {false, 4}}}};
  ASSERT_TRUE(StoreDecision(pricer_, 5, decision));
  const std::optional<KeptDecision> found = FindDecision(pricer_, 5).value();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->seconds, 12.5);
  EXPECT_EQ(found->known, decision.known);
  ASSERT_EQ(found->joins.size(), 1u);
  EXPECT_EQ(found->joins[0].choices, decision.joins[0].choices);
  EXPECT_FALSE(FindDecision(pricer_, 6).value().has_value());
}

TEST_F(KeptDecisionTest, WhatCannotBeReadIsNone) {
  ASSERT_TRUE(StoreDecision(pricer_, 5, {1, {}, {{3, {true, 0}}}}));
  for (const std::vector<double>& numbers : {std::vector<double>{}, {2, 3, 1, 0}, {1, 3, 1}, {1, 3, 1, 0, 0}, {1, 1e300, 1, 0}}) {
    ASSERT_TRUE(cache_.Store(pricer_.KeyOf(Fact::kKnown, 5), {numbers, {}}));
    EXPECT_FALSE(FindDecision(pricer_, 5).value().has_value());
  }
}

}  // namespace
}  // namespace collage
