#include "collage/driver/plans.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "collage/decide/priced_problem.h"
#include "collage/driver/branches.h"
#include "collage/driver/device_memory.h"
#include "collage/driver/side_by_side.h"
#include "collage/explain/plan_names.h"

namespace collage {
namespace {

/// What has run inside of programs, where that is a cover; else whatever is known.
std::vector<Cost> TriedCosts(const Placement& placement, const std::vector<Price>& prices) {
  std::vector<Cost> costs = Centres(prices);
  for (size_t kernel = 0; kernel < prices.size(); ++kernel) {
    // A plan that needs another conversion than was tried is no new risk.
    if (placement.kernels[kernel].candidate != PlacedKernel::kNone && prices[kernel].known != Price::Known::kInProgram)
      costs[kernel] = Cost::Unknown();
  }
  return costs;
}

SearchResult Priced(const Placement& placement, std::vector<SearchChoice> choices, const std::vector<Price>& prices) {
  SearchProblem problem = placement.built.problem;
  for (const SearchChoice& choice : choices) {
    const size_t kernel = placement.arms.kernel_of[choice.candidate][choice.variant];
    problem.candidates[choice.candidate].variants[choice.variant].cost = kernel == Arms::kNoKernel ? Cost() : prices[kernel].centre;
  }
  problem.conversion = [&](size_t tensor, size_t from, size_t to) {
    const size_t kernel = placement.arms.conversion_kernel(tensor, from, to);
    return kernel == Arms::kNoKernel ? Cost() : prices[kernel].centre;
  };
  SearchResult result;
  result.cost = PriceOfCover(problem, choices);
  for (const SearchChoice& choice : choices) result.partitions += problem.candidates[choice.candidate].is_partition ? 1 : 0;
  result.choices = std::move(choices);
  return result;
}

/// The plan of tried kernels that is preferred, and where the cheapest is another one, that behind it.
Status AddSearched(const Placement& placement, const std::vector<Price>& prices, const Declared& declared, std::vector<Plan>& plans) {
  const std::vector<bool> competing = placement.Competing();
  std::vector<Cost> costs = TriedCosts(placement, prices);
  Result<SearchResult> best = SearchAt(placement.arms, costs, competing);
  if (!best) best = SearchAt(placement.arms, costs, placement.Lying());
  if (!best) {
    costs = Centres(prices);
    best = SearchAt(placement.arms, costs, competing);
    if (!best) best = SearchAt(placement.arms, costs, placement.Lying());
  }
  if (!best) return Fail(placement.NameNode(best.error().message));
  PricedProblem problem(placement.arms, competing);
  const SearchResult fewest = WithFewerPartitions(problem, costs, *best, declared.smallest_difference);
  plans.push_back(MakePlan(placement, kSearchedPlan, fewest));
  if (fewest.choices == best->choices) return {};
  plans.front().tie = PlanTie{declared.smallest_difference, best->partitions, best->cost};
  plans.push_back(MakePlan(placement, "cheapest", std::move(*best)));
  return {};
}

/// Of the plans without such kernels the cheapest, under this name.
void AddWithout(const std::function<bool(const PlacedKernel&)>& is_such, const char* name, const Placement& placement,
                const std::vector<Price>& prices, std::vector<Plan>& plans) {
  const std::vector<PlanKernel>& of_searched = plans.front().kernels;
  if (std::none_of(of_searched.begin(), of_searched.end(),
                   [&](const PlanKernel& kernel) { return is_such(placement.kernels[kernel.kernel]); }))
    return;
  for (std::vector<Cost> costs : {TriedCosts(placement, prices), Centres(prices)}) {
    for (size_t kernel = 0; kernel < costs.size(); ++kernel) {
      if (is_such(placement.kernels[kernel])) costs[kernel] = Cost::Unknown();
    }
    Result<SearchResult> found = SearchAt(placement.arms, costs, placement.Competing());
    if (!found) found = SearchAt(placement.arms, costs, placement.Lying());
    if (!found || !FitsMemory(placement, found->choices)) continue;
    plans.push_back(MakePlan(placement, name, std::move(*found)));
    return;
  }
}

/// Where the searched plan uses the permitted precision, the cheapest that does not: what the permit gains is seen beside it, and it is
/// there where the other differs too much after all.
void AddInFloat32(const Placement& placement, const std::vector<Price>& prices, std::vector<Plan>& plans) {
  if (!placement.precision) return;
  AddWithout([](const PlacedKernel& kernel) { return kernel.variant.uses_precision; }, kInFloat32, placement, prices, plans);
}

/// Where the searched plan runs branches on shares of the team, the cheapest that does not: kernels that are measured alone find the caches
/// as others leave them, and two at a time leave them otherwise.
void AddInTurn(const Placement& placement, const std::vector<Price>& prices, std::vector<Plan>& plans) {
  const std::optional<size_t> target = SideBySideTarget(placement);
  if (!target) return;
  const auto is_side_by_side = [&](const PlacedKernel& kernel) {
    return kernel.candidate != PlacedKernel::kNone && placement.candidates[kernel.candidate].backend == *target;
  };
  AddWithout(is_side_by_side, kBranchesInTurn, placement, prices, plans);
}

}  // namespace

Result<FinalPlans> PlansToRace(const Placement& placement, const std::vector<Price>& prices, const std::vector<GreedyPlan>& greedy,
                               const Declared& declared, std::optional<SearchResult> chosen) {
  FinalPlans result;
  const std::vector<Cost> centres = Centres(prices);
  if (chosen) {
    result.plans.push_back(MakePlan(placement, kSearchedPlan, std::move(*chosen)));
  } else {
    COLLAGE_TRY_STATUS(AddSearched(placement, prices, declared, result.plans));
  }
  const auto searched = static_cast<std::ptrdiff_t>(result.plans.size());
  for (const size_t target : placement.Singles()) {
    Result<SearchResult> single = SearchAt(placement.arms, centres, placement.AllowedFor(target));
    if (!single) {
      result.missing.push_back({placement.TitleOf(target), placement.NameNode(single.error().message)});
      continue;
    }
    if (!FitsMemory(placement, single->choices)) {
      result.missing.push_back({placement.TitleOf(target), "it needs more memory than its device has"});
      continue;
    }
    result.plans.push_back(MakePlan(placement, placement.TitleOf(target), std::move(*single)));
    result.plans.back().is_single_backend = true;
  }
  for (const GreedyPlan& plan : greedy) {
    const std::string name = placement.NameOf(plan.target) + " (greedy)";
    std::optional<std::vector<SearchChoice>> choices = ChoicesOf(placement, plan, prices);
    if (!choices) {
      result.missing.push_back({name, plan.reason.empty() ? "one of its partitions could not be compiled, run or measured" : plan.reason});
      continue;
    }
    SearchResult priced = Priced(placement, std::move(*choices), prices);
    if (!priced.cost.IsKnown()) {
      result.missing.push_back({name, kTimeEnded});
      continue;
    }
    result.plans.push_back(MakePlan(placement, name, std::move(priced)));
    result.plans.back().is_single_backend = true;
  }
  // What a single backend comes to as well goes by its name.
  std::rotate(result.plans.begin() + 1, result.plans.begin() + searched, result.plans.end());
  AddInFloat32(placement, prices, result.plans);
  AddInTurn(placement, prices, result.plans);
  if (std::optional<Plan> side_by_side = SideBySide(placement, result.plans.front(), prices))
    result.plans.push_back(std::move(*side_by_side));
  return result;
}

namespace {

/// What plans have to compile, each with the first plan that has it: a kernel at each of its places, since each has weights of its own;
/// code that is generated serves all of them.
class NewKernels {
 public:
  NewKernels(const Placement& placement, const std::vector<Price>& prices) : placement_(placement), prices_(prices) {}

  std::vector<size_t> OfCover(const std::vector<SearchChoice>& choices) {
    std::vector<size_t> kernels;
    for (const SearchChoice& choice : choices) Add(choice.candidate, placement_.arms.kernel_of[choice.candidate][choice.variant], kernels);
    return kernels;
  }

  /// Nothing where what is known of it does not cover the graph. Only a search could tell which kernels the cheapest cover has; those of
  /// most operators are about as many.
  std::optional<std::vector<size_t>> OfSingle(size_t target) {
    const SearchProblem& problem = placement_.built.problem;
    const std::vector<bool> allowed = placement_.AllowedFor(target);
    std::multimap<size_t, size_t, std::greater<>> possible;  // by size
    IndexSet covered;
    for (size_t c = 0; c < problem.candidates.size(); ++c) {
      if (!allowed[c] || !CheapestKnown(c)) continue;
      covered |= problem.candidates[c].inside;
      possible.emplace(problem.candidates[c].inside.Count(), c);
    }
    if (covered.Count() != problem.node_count) return std::nullopt;
    std::vector<size_t> kernels;
    IndexSet taken;
    for (const auto& [size, c] : possible) {
      if (taken.Intersects(problem.candidates[c].inside)) continue;
      taken |= problem.candidates[c].inside;
      Add(c, *CheapestKnown(c), kernels);
    }
    return kernels;
  }

 private:
  [[nodiscard]] Cost CostOf(size_t kernel) const { return kernel == Arms::kNoKernel ? Cost() : prices_[kernel].centre; }
  [[nodiscard]] std::optional<size_t> CheapestKnown(size_t c) const {
    const std::vector<size_t>& kernels = placement_.arms.kernel_of[c];
    const auto cheapest = std::min_element(kernels.begin(), kernels.end(), [&](size_t a, size_t b) { return CostOf(a) < CostOf(b); });
    return cheapest == kernels.end() || !CostOf(*cheapest).IsKnown() ? std::nullopt : std::optional(*cheapest);
  }
  void Add(size_t c, size_t kernel, std::vector<size_t>& kernels) {
    if (kernel == Arms::kNoKernel) return;
    const bool is_generated = placement_.targets[placement_.candidates[c].backend].rules.style == BackendRules::Style::kNative;
    if (seen_.emplace(kernel, is_generated ? kEverywhere : c).second) kernels.push_back(kernel);
  }

  static constexpr size_t kEverywhere = static_cast<size_t>(-1);

  const Placement& placement_;
  const std::vector<Price>& prices_;
  std::set<std::pair<size_t, size_t>> seen_;  // kernels, and the candidates that have them
};

}  // namespace

PlanCounts MostPlansToRace(const Placement& placement, const std::vector<Price>& prices, const std::vector<GreedyPlan>& greedy,
                           const SearchResult* best) {
  const size_t searched = 2;  // with the cheapest one behind it
  const size_t in_float32 = placement.precision ? 1 : 0;
  const size_t in_turn = SideBySideTarget(placement) ? 1 : 0;
  const size_t over_cpus = placement.devices.size() > 1 ? 1 : 0;
  PlanCounts counts{searched + in_float32 + in_turn + over_cpus};
  NewKernels kernels(placement, prices);
  if (best) counts.of_best = kernels.OfCover(best->choices);
  for (const GreedyPlan& plan : greedy) {
    if (const auto choices = ChoicesOf(placement, plan, prices)) counts.single_backends.push_back(kernels.OfCover(*choices));
  }
  for (const size_t target : placement.Singles()) {
    if (auto of_single = kernels.OfSingle(target)) counts.single_backends.push_back(std::move(*of_single));
  }
  return counts;
}

}  // namespace collage
