// How far a plan hangs on what was assumed of the kernels that have not run.

#include "collage/driver/placement_state.h"
#include "collage/driver/restricted_prices.h"

namespace collage {
namespace {

/// Bounds as if they were prices.
class BoundPrices : public VariantPrices {
 public:
  explicit BoundPrices(const CandidatePrices& prices) : prices_(prices) {}
  [[nodiscard]] Cost PriceOrBound(size_t c, size_t v) const override { return prices_.PriceOrBound(c, v); }
  [[nodiscard]] bool IsPriced(size_t, size_t) const override { return true; }
  Status Price(size_t, size_t) override { return {}; }

 private:
  const CandidatePrices& prices_;
};

/// Trusts assumptions so far while it lives.
class Trusting {
 public:
  Trusting(CandidatePrices& prices, const Trust& trust) : prices_(prices), before_(prices.SetTrust(trust)) {}
  ~Trusting() { prices_.SetTrust(before_); }
  Trusting(const Trusting&) = delete;
  Trusting& operator=(const Trusting&) = delete;

 private:
  CandidatePrices& prices_;
  Trust before_;
};

}  // namespace

Result<Cost> Placement::State::LowerBound(const Trust& trust) {
  const Trusting trusting(*prices, trust);
  BoundPrices bounds(*prices);
  const auto search = [&](const std::vector<bool>& allowed) {
    RestrictedPrices restricted(bounds, allowed);
    return SearchLazily(built.problem, restricted, progress);
  };
  Result<LazySearchResult> found = search(Competing());
  // The plan, too, was then searched with the fallback everywhere.
  if (!found) found = search(std::vector<bool>(candidates.size(), true));
  if (!found) return Fail(NameNode(found.error().message));
  return found->result.cost;
}

Result<Cost> Placement::ProvedLowerBound() { return state_->LowerBound(kNoTrust); }

Result<double> Placement::AssumptionsHoldDownTo() {
  const double least = COLLAGE_TRY(state_->LowerBound({})).ToSeconds() * (1 - kHoldsWithin);
  int holds = 100;
  for (int fails = -1; holds - fails > 1;) {
    const int middle = (holds + fails) / 2;
    (COLLAGE_TRY(state_->LowerBound({middle / 100.0, {}})).ToSeconds() < least ? fails : holds) = middle;
  }
  return holds / 100.0;
}

Status Placement::QuestionAssumptions(double most_measured) {
  constexpr double kStep = 0.95;
  constexpr double kLeast = 0.1;
  // Of the whole plan. Kernels that have less to gain wait until nothing is trusted: there are many of them.
  constexpr double kStake = 0.002;
  CandidatePrices& prices = *state_->prices;
  LimitedPrices limited(prices, state_->progress, static_cast<size_t>(most_measured * static_cast<double>(prices.distinct())));
  RestrictedPrices restricted(limited, state_->Competing());
  const Progress until{state_->progress.report, &limited.stop()};
  const Cost stake = Cost::Seconds(kStake * COLLAGE_TRY(state_->LowerBound({})).ToSeconds());
  for (double share = kStep; !limited.stop(); share *= kStep) {
    const Trust trust = share < kLeast ? kNoTrust : Trust{share, stake};
    const Trusting trusting(prices, trust);
    // Where there is no cover, that is for the search for a plan to say.
    const Result<LazySearchResult> found = SearchLazily(state_->built.problem, restricted, until, {WhenStopped::kGiveUp});
    if (!found || trust.share == 0) break;
  }
  return {};
}

}  // namespace collage
