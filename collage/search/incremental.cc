#include "collage/search/incremental.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "collage/search/acyclic.h"
#include "collage/search/sweep.h"
#include "collage/support/check.h"

namespace collage {
namespace {

// Steps before bounds are used, and between uses: more of them cost more than they spare the sweep.
constexpr size_t kSteps = 40;
// The first width of the band above the lower bound in which covers are looked for, as a share of the bound.
constexpr double kFirstWidth = 2e-4;
// By how much the band grows when there is none.
constexpr Picoseconds kWidening = 4;
// States for each node that a sweep within the band may expand before bounds are improved instead; twice as many after each such end.
constexpr size_t kStatesOfANode = 50;
// A sweep of so few states, over candidates that improved promises alone, finds a good cover where the known one is more than this part
// of the bound above it.
constexpr SweepLimits kRough{4, 4};
constexpr Picoseconds kFar = 1000;

}  // namespace

class IncrementalSearch::State {
 public:
  State(const SearchProblem& problem, const ShortestPathOptions& options, std::shared_ptr<SharedCoverGraph> covers)
      : options_(options),
        covers_(std::move(covers)),
        problem_(problem),
        tables_(problem_, std::vector<bool>(problem.candidates.size(), false)) {}

  /// Whether the problems differ in prices alone: tables keep everything else of the first one.
  [[nodiscard]] bool IsOf(const SearchProblem& problem) const {
    const auto same_variant = [](const SearchVariant& a, const SearchVariant& b) {
      return a.input_layouts == b.input_layouts && a.output_layouts == b.output_layouts;
    };
    const auto same_candidate = [&](const SearchCandidate& a, const SearchCandidate& b) {
      return a.inside == b.inside && a.backend == b.backend && a.is_partition == b.is_partition && a.inputs == b.inputs &&
             a.outputs == b.outputs && std::ranges::equal(a.variants, b.variants, same_variant);
    };
    return problem.node_count == problem_.node_count && problem.layout_count == problem_.layout_count &&
           problem.backend_count == problem_.backend_count && problem.tensors == problem_.tensors &&
           std::ranges::equal(problem.candidates, problem_.candidates, same_candidate);
  }

  Result<SearchResult> Search(const SearchProblem& problem, const std::vector<bool>& forbidden, const std::optional<EnoughGain>& enough) {
    enough_ = enough;
    const Cost fallen = TakePrices(problem, forbidden);
    if (fallen == Cost() && last_ && PriceOfCover(problem_, last_->choices) == last_->cost) return *last_;
    last_.reset();
    least_ = fallen < least_ ? least_ - fallen : Cost();
    bool is_first = true;
    Cost least_of_all = least_;
    Result<SearchResult> result = CheapestAcyclic(problem_, options_.most_solves, [&](const std::vector<bool>& cut_off) {
      SearchTables::VariantMask left_out(tables_.variant_count(), false);
      for (size_t c = 0; c < problem_.candidates.size(); ++c) {
        if (forbidden[c] || cut_off[c]) LeaveOut(c, left_out);
      }
      Result<SearchResult> solved = Solve(left_out);
      // The first is asked without anything cut off: what it says holds for all covers.
      if (std::exchange(is_first, false) && solved) least_of_all = std::max(least_, solved->lower_bound);
      return solved;
    });
    least_ = least_of_all;
    if (result) incumbent_ = result->choices;
    if (result && result->is_proven) last_ = *result;
    return result;
  }

 private:
  /// By how much a cover can have become cheaper at most: it has each candidate once, and makes each conversion once. Invalid where nothing
  /// can be said.
  Cost TakePrices(const SearchProblem& problem, const std::vector<bool>& forbidden) {
    problem_.conversion = problem.conversion;
    Cost fallen = tables_.RefreshConversions();
    if (problem_.transition != problem.transition) fallen = Cost::Invalid();
    problem_.transition = problem.transition;
    for (size_t c = 0; c < problem.candidates.size(); ++c) {
      Cost most;
      for (size_t v = 0; v < problem.candidates[c].variants.size(); ++v) {
        const Cost now = forbidden[c] ? Cost::Invalid() : problem.candidates[c].variants[v].cost;
        Cost& before = problem_.candidates[c].variants[v].cost;
        if (now < before) most = std::max(most, before.IsKnown() ? before - now : Cost::Invalid());
        before = now;
      }
      fallen += most;
    }
    return fallen;
  }

  Result<SearchResult> Solve(const SearchTables::VariantMask& left_out) {
    tables_.Reprice(left_out);
    // Without a price for every node, as at the beginning of a decision, a sweep would find the same after seconds.
    if (const std::optional<size_t> node = tables_.FirstUncovered()) return NotCovered(*node);
    const SweepLimits limits{options_.most_states, SIZE_MAX};  // the graph has limited the sets
    if (!relaxation_) {
      if (options_.easy_states > 0 && !covers_->IsNeeded()) {
        const SweepLimits easy{options_.easy_states, options_.most_sets, SIZE_MAX, true};
        const SweepAnswer answer = Sweep(tables_, easy, options_.reuse_segments, nullptr);
        if (!answer.gave_up) return ResultOf(answer);
      }
      graph_ = covers_->Of(problem_, options_.most_covered);
      if (!graph_) {
        const size_t most_states = std::max<size_t>(1, options_.most_states / options_.most_sets_unproven);
        return ResultOf(Sweep(tables_, {most_states, options_.most_sets_unproven}, options_.reuse_segments, nullptr));
      }
      relaxation_.emplace(tables_, *graph_);
    }
    relaxation_->Reprice();
    return SolveWithin(left_out, limits);
  }

  static Result<SearchResult> ResultOf(const SweepAnswer& answer) {
    if (answer.found) return *answer.found;
    return NotCovered(answer.furthest);
  }

  static Result<SearchResult> NotCovered(size_t node) { return Fail("no valid candidate covers node " + std::to_string(node)); }

  /// Looks for the cheapest cover in a band above the lower bound, and widens it until there is one. The band is swept without the
  /// variants that no cover in it has; variants that only covers dearer than a known one have are left out for good.
  Result<SearchResult> SolveWithin(const SearchTables::VariantMask& left_out, SweepLimits limits) {
    // Of all variants, those too that these tables cannot hold.
    const Cost least_of_any = tables_.IsWhole() ? Cost::Invalid() : tables_.LeastFrom(0);
    Cost known = Cost::Invalid();
    std::vector<SearchChoice> known_cover;
    const auto take = [&](const std::vector<SearchChoice>& choices) {
      const bool fits = std::all_of(choices.begin(), choices.end(), [&](const SearchChoice& choice) {
        return tables_.VariantsOf(choice.candidate)[choice.variant].is_usable;
      });
      const Cost cost = fits && !choices.empty() ? PriceOfCover(problem_, choices) : Cost::Invalid();
      if (cost < known) {
        known = cost;
        known_cover = choices;
      }
      return Relaxation::Target{known, EnoughBelow(known)};
    };
    std::vector<bool> is_seen(problem_.candidates.size(), false);  // in a cover by which promises were improved
    const auto see = [&](const std::vector<SearchChoice>& choices) {
      for (const SearchChoice& choice : choices) is_seen[choice.candidate] = true;
      return take(choices);
    };
    const auto good_enough = [&](Cost least) { return GoodEnough(std::move(known_cover), known, std::min(least_of_any, least)); };
    take(incumbent_);
    if (options_.incumbent) take(options_.incumbent->choices);
    SearchTables::VariantMask beaten = left_out;
    const auto leave_out = [&] {
      relaxation_->FindLeastWith();
      LeaveOutAbove(Ceiling(known), beaten);
    };
    const bool is_near = relaxation_->Start(Ceiling(known), leave_out);
    if (is_near) {
      relaxation_->Remember();
      tables_.Reprice(beaten);
      relaxation_->Reprice();
      relaxation_->Start(Ceiling(known));
    }
    size_t expanded = 0;
    size_t budget = kStatesOfANode * problem_.node_count;
    Cost least = std::min(known, least_);
    Picoseconds width = 0;
    while (true) {
      least = std::max(least, std::min(Ceiling(known), relaxation_->Improve(kSteps, least, see)));
      // Nothing covers the graph. Which node is not covered one state of each covered set tells.
      if (!least.IsKnown()) return ResultOf(Sweep(tables_, {1, options_.most_sets}, false, nullptr));
      if (IsEnough(known, least)) return good_enough(least);
      if (width == 0) {
        width = std::max<Picoseconds>(1, static_cast<Picoseconds>(kFirstWidth * static_cast<double>(ToPicoseconds(least))));
        if (!is_near) relaxation_->Remember();
      }
      leave_out();
      if (ToPicoseconds(known) - ToPicoseconds(least) > ToPicoseconds(least) / kFar) {
        const SweepAnswer rough = SweepBand(OfThese(is_seen, beaten), Ceiling(known), kRough);
        expanded += rough.expanded;
        if (rough.found) take(rough.found->choices);
        if (IsEnough(known, least)) return good_enough(least);
        LeaveOutAbove(Ceiling(known), beaten);
      }
      const Cost cutoff = std::min(Ceiling(known), least + ToCost(width));
      limits.most_expanded = budget;
      const SweepAnswer answer = SweepBand(beaten, cutoff, limits);
      expanded += answer.expanded;
      if (answer.found) {
        SearchResult result = *answer.found;
        result.states_expanded = expanded;
        result.lower_bound = std::min(least_of_any, std::max(result.lower_bound, std::min(least, result.cost)));
        result.is_proven = result.lower_bound == result.cost;
        return result;
      }
      if (answer.gave_up) {
        budget *= 2;
        width = std::max<Picoseconds>(1, width / 2);
      } else {
        least = cutoff;
        width *= kWidening;
        if (IsEnough(known, least)) return good_enough(least);
        COLLAGE_CHECK(cutoff < known, "a cover that is known was not found");
      }
      tables_.Reprice(beaten);
      relaxation_->Reprice();
    }
  }

  /// Covers that cost more than this are of no use.
  [[nodiscard]] Cost Ceiling(Cost known) const { return enough_ && known.IsKnown() ? std::min(known, enough_->below) : known; }

  /// The lower bound at which this cover is good enough.
  [[nodiscard]] Cost EnoughBelow(Cost known) const {
    if (!enough_ || known >= enough_->plan) return Ceiling(known);
    const auto gained = static_cast<double>(ToPicoseconds(enough_->plan) - ToPicoseconds(known));
    return std::min(enough_->below, ToCost(ToPicoseconds(enough_->plan) - static_cast<Picoseconds>(gained / enough_->share)));
  }
  [[nodiscard]] bool IsEnough(Cost known, Cost least) const { return enough_ && known.IsKnown() && least >= EnoughBelow(known); }

  SearchResult GoodEnough(std::vector<SearchChoice> cover, Cost cost, Cost lower_bound) const {
    SearchResult result{cost, std::move(cover), 0, std::min(lower_bound, cost), 0, lower_bound >= cost};
    for (const SearchChoice& choice : result.choices) result.partitions += problem_.candidates[choice.candidate].is_partition ? 1 : 0;
    return result;
  }

  /// Marks the variants that only covers dearer than that have.
  void LeaveOutAbove(Cost cost, SearchTables::VariantMask& left_out) const {
    for (size_t c = 0; c < problem_.candidates.size(); ++c) {
      for (size_t v = 0; v < problem_.candidates[c].variants.size(); ++v) {
        if (relaxation_->LeastWith(c, v) > cost) left_out[tables_.VariantAt(c, v)] = true;
      }
    }
  }
  /// Marks all of one candidate.
  void LeaveOut(size_t candidate, SearchTables::VariantMask& left_out) const {
    std::fill(left_out.begin() + static_cast<std::ptrdiff_t>(tables_.VariantAt(candidate, 0)),
              left_out.begin() + static_cast<std::ptrdiff_t>(tables_.VariantAt(candidate + 1, 0)), true);
  }

  /// What is left out where only these candidates are of use.
  [[nodiscard]] SearchTables::VariantMask OfThese(const std::vector<bool>& candidates, SearchTables::VariantMask left_out) const {
    for (size_t c = 0; c < candidates.size(); ++c) {
      if (!candidates[c]) LeaveOut(c, left_out);
    }
    return left_out;
  }

  SweepAnswer SweepBand(SearchTables::VariantMask out_of_band, Cost cutoff, const SweepLimits& limits) {
    LeaveOutAbove(cutoff, out_of_band);
    tables_.Reprice(out_of_band);
    relaxation_->Reprice();
    relaxation_->Evaluate();
    const SweepBound bound{*relaxation_, *graph_, cutoff};
    return Sweep(tables_, limits, false, &bound);
  }

  ShortestPathOptions options_;
  std::shared_ptr<SharedCoverGraph> covers_;
  std::optional<EnoughGain> enough_;  // of the search that goes on
  SearchProblem problem_;
  SearchTables tables_;
  const CoverGraph* graph_ = nullptr;  // where there are bounds
  std::optional<Relaxation> relaxation_;
  std::vector<SearchChoice> incumbent_;
  std::optional<SearchResult> last_;  // proven under the prices of problem_
  Cost least_;                        // no cover costs less under the prices of problem_, whether cyclic or not
};

IncrementalSearch::IncrementalSearch(const ShortestPathOptions& options, std::shared_ptr<SharedCoverGraph> covers)
    : options_(options), covers_(std::move(covers)) {}
IncrementalSearch::IncrementalSearch(IncrementalSearch&&) noexcept = default;
IncrementalSearch& IncrementalSearch::operator=(IncrementalSearch&&) noexcept = default;
IncrementalSearch::~IncrementalSearch() = default;

Result<SearchResult> IncrementalSearch::Search(const SearchProblem& problem, const std::vector<bool>& forbidden,
                                               const std::optional<EnoughGain>& enough) {
  if (problem.node_count == 0) return SearchResult{};
  if (!state_ || !state_->IsOf(problem)) {
    // What was shared fits the first problem only.
    std::shared_ptr<SharedCoverGraph> covers = state_ ? nullptr : covers_;
    state_ = std::make_unique<State>(problem, options_, covers ? std::move(covers) : std::make_shared<SharedCoverGraph>());
  }
  return state_->Search(problem, forbidden, enough);
}

Result<SearchResult> IncrementalSearch::Search(const SearchProblem& problem) {
  return Search(problem, std::vector<bool>(problem.candidates.size(), false));
}

}  // namespace collage
