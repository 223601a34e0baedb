// Which of several plans that cannot be told apart is taken.

#include <algorithm>

#include "collage/driver/placement_state.h"
#include "collage/driver/restricted_prices.h"

namespace collage {
namespace {

/// Known prices, and so much more for each partition.
class ChargedPrices : public VariantPrices {
 public:
  ChargedPrices(const SearchProblem& problem, VariantPrices& prices, Cost for_partition)
      : problem_(problem), prices_(prices), for_partition_(for_partition) {}
  [[nodiscard]] Cost PriceOrBound(size_t c, size_t v) const override {
    if (!prices_.IsPriced(c, v)) return Cost::Invalid();
    const Cost price = prices_.PriceOrBound(c, v);
    return problem_.candidates[c].is_partition ? price + for_partition_ : price;
  }
  [[nodiscard]] bool IsPriced(size_t, size_t) const override { return true; }
  Status Price(size_t, size_t) override { return {}; }

 private:
  const SearchProblem& problem_;
  VariantPrices& prices_;
  Cost for_partition_;
};

}  // namespace

Result<Plan> Placement::WithFewerPartitions(const Plan& cheapest, double within) {
  // The price of a partition: at the first, whoever has one fewer wins if it is within at all; fewer searches than that are not worth it.
  constexpr int kMostSearches = 10;
  const Cost most = Cost::Seconds(cheapest.result.cost.ToSeconds() * (1 + within));
  Cost for_partition = most - cheapest.result.cost;
  State& state = *state_;
  RestrictedPrices competing(*state.prices, state.Competing());
  for (int search = 0; search < kMostSearches && Cost() < for_partition; ++search) {
    ChargedPrices charged(state.built.problem, competing, for_partition);
    Result<LazySearchResult> found = SearchLazily(state.built.problem, charged, state.progress);
    if (!found) return cheapest;  // it needed the fallback
    SearchResult result = std::move(found->result);
    for (size_t i = 0; i < result.partitions; ++i) result.cost = result.cost - for_partition;
    if (result.partitions >= cheapest.result.partitions) return cheapest;
    if (result.cost <= most) {
      if (!COLLAGE_TRY(state.VerifyChoices(result.choices))) continue;  // of what is Invalid now no plan is made
      result.lower_bound = std::min(cheapest.result.lower_bound, result.cost);
      Plan plan{cheapest.name, std::move(result), cheapest.is_single_backend};
      plan.tie = PlanTie{within, cheapest.result.partitions, cheapest.result.cost};
      return plan;
    }
    for_partition = Cost::Seconds(for_partition.ToSeconds() / 2);
  }
  return cheapest;
}

bool Placement::IsPreferred(const Plan& a, const Plan& b) const {
  if (a.result.partitions != b.result.partitions) return a.result.partitions < b.result.partitions;
  return ComparePreference(state_->built.problem, a.result.choices, b.result.choices) < 0;
}

}  // namespace collage
