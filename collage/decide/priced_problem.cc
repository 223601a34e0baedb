#include "collage/decide/priced_problem.h"

#include <algorithm>
#include <string>

#include "collage/support/clock.h"

namespace collage {

PricedProblem::PricedProblem(const Arms& arms, const std::vector<bool>& allowed, Searched searched,
                             std::shared_ptr<SharedCoverGraph> covers)
    : arms_(arms), forbidden_(allowed), searched_(std::move(searched)), search_({}, std::move(covers)) {
  forbidden_.flip();
  forbidden_.resize(arms_.problem.candidates.size(), false);
}

void PricedProblem::EnsureProblem() {
  if (problem_) return;
  problem_ = arms_.problem;
  problem_->conversion = [this](size_t tensor, size_t from, size_t to) {
    const size_t kernel = arms_.conversion_kernel && from != to ? arms_.conversion_kernel(tensor, from, to) : Arms::kNoKernel;
    return kernel == Arms::kNoKernel ? Cost() : (*costs_)[kernel];
  };
}

Cost PricedProblem::CostOf(size_t candidate, size_t variant, const std::vector<Cost>& costs) const {
  const size_t kernel = arms_.kernel_of[candidate][variant];
  return kernel == Arms::kNoKernel ? Cost() : costs[kernel];
}

void PricedProblem::SetCost(size_t candidate, size_t variant, const std::vector<Cost>& costs, Cost for_partition) {
  const Cost cost = CostOf(candidate, variant, costs);
  SearchCandidate& priced = problem_->candidates[candidate];
  priced.variants[variant].cost = priced.is_partition ? cost + for_partition : cost;
}

std::optional<size_t> PricedProblem::FirstWithoutCost(const std::vector<Cost>& costs) const {
  IndexSet covered;
  for (size_t c = 0; c < arms_.problem.candidates.size(); ++c) {
    bool is_known = false;
    for (size_t v = 0; v < arms_.problem.candidates[c].variants.size(); ++v) is_known = is_known || CostOf(c, v, costs).IsKnown();
    if (is_known && !forbidden_[c]) covered |= arms_.problem.candidates[c].inside;
  }
  for (size_t node = 0; node < arms_.problem.node_count; ++node) {
    if (!covered.Contains(node)) return node;
  }
  return std::nullopt;
}

Result<SearchResult> PricedProblem::SearchBelow(const std::vector<Cost>& costs, Cost plan, Cost below) {
  constexpr double kShare = 0.5;  // what is measured next hangs little on it: nearer to 1, as many kernels are asked for
  return Search(costs, {}, EnoughGain{plan, below, kShare});
}

Result<Cost> PricedProblem::BoundBelow(const std::vector<Cost>& costs, Cost plan) {
  constexpr double kShare = 0.9;  // whoever reads what might be gained needs it no closer: exact bounds of an HRNet took 3.5 times as long
  return COLLAGE_TRY(Search(costs, {}, EnoughGain{plan, plan, kShare})).lower_bound;
}

Result<SearchResult> PricedProblem::Search(const std::vector<Cost>& costs, Cost for_partition, const std::optional<EnoughGain>& enough) {
  if (!problem_) {
    if (const std::optional<size_t> node = FirstWithoutCost(costs)) return Fail("no valid candidate covers node " + std::to_string(*node));
  }
  EnsureProblem();
  costs_ = &costs;
  for (size_t c = 0; c < problem_->candidates.size(); ++c) {
    for (size_t v = 0; v < problem_->candidates[c].variants.size(); ++v) SetCost(c, v, costs, for_partition);
  }
  const Clock::time_point start = Clock::now();
  Result<SearchResult> found = search_.Search(*problem_, forbidden_, enough);
  if (searched_) searched_(found, !enough.has_value(), Clock::SecondsSince(start));
  return found;
}

Cost PricedProblem::PriceOf(const std::vector<SearchChoice>& cover, const std::vector<Cost>& costs) {
  EnsureProblem();
  costs_ = &costs;
  for (const SearchChoice& choice : cover) SetCost(choice.candidate, choice.variant, costs, {});
  return PriceOfCover(*problem_, cover);
}

Result<SearchResult> SearchAt(const Arms& arms, const std::vector<Cost>& costs, const std::vector<bool>& allowed) {
  return PricedProblem(arms, allowed).Search(costs);
}

std::vector<Cost> CostsByKernel(const std::vector<Price>& prices, Cost Price::*member) {
  std::vector<Cost> costs;
  costs.reserve(prices.size());
  for (const Price& price : prices) costs.push_back(price.known == Price::Known::kInvalid ? Cost::Invalid() : price.*member);
  return costs;
}

std::vector<Cost> Centres(const std::vector<Price>& prices) { return CostsByKernel(prices, &Price::centre); }
std::vector<Cost> Lows(const std::vector<Price>& prices) { return CostsByKernel(prices, &Price::low); }

SearchResult WithFewerPartitions(PricedProblem& problem, const std::vector<Cost>& costs, const SearchResult& best, double within) {
  const Cost most = Cost::Seconds(best.cost.ToSeconds() * (1 + within));
  // At the first charge, whoever has one partition fewer wins if it is within at all; at the last, whoever saves half as much as an equal
  // share of what may be given up for each partition of the best plan.
  const double least = (most - best.cost).ToSeconds() / (2 * static_cast<double>(std::max<size_t>(best.partitions, 1)));
  for (double charge = (most - best.cost).ToSeconds(); charge > least; charge /= 2) {
    Result<SearchResult> found = problem.Search(costs, Cost::Seconds(charge));
    if (!found) return best;
    if (found->partitions >= best.partitions) return best;
    found->cost = problem.PriceOf(found->choices, costs);
    found->lower_bound = best.lower_bound;
    if (found->cost <= most) return std::move(*found);
  }
  return best;
}

std::map<size_t, int> UsesOf(const Arms& arms, const std::vector<SearchChoice>& cover) {
  std::map<size_t, int> uses;
  const auto use = [&](size_t kernel) {
    if (kernel != Arms::kNoKernel) ++uses[kernel];
  };
  for (const SearchChoice& choice : cover) use(arms.kernel_of[choice.candidate][choice.variant]);
  if (!arms.conversion_kernel) return uses;
  for (const ConversionMade& made : ConversionsOf(arms.problem, cover)) use(arms.conversion_kernel(made.tensor, made.from, made.to));
  return uses;
}

}  // namespace collage
