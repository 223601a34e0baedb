#include "collage/decide/decide.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <unordered_set>

#include "collage/decide/priced_problem.h"
#include "collage/support/check.h"
#include "collage/support/clock.h"

namespace collage {
namespace {

/// What to price first is asked of these; no statement rests on them.
std::vector<Cost> UsualLows(const std::vector<Price>& prices) { return CostsByKernel(prices, &Price::usual_low); }
std::vector<Cost> ProvedLows(const std::vector<Price>& prices) { return CostsByKernel(prices, &Price::proved_low); }

class Decider {
 public:
  /// Without a measurer nothing is measured.
  Decider(const Arms& arms, std::vector<Evidence>& evidence, Measurer* measurer, const DecideOptions& options)
      : arms_(arms),
        evidence_(evidence),
        measurer_(measurer),
        options_(options),
        covers_(std::make_shared<SharedCoverGraph>()),
        at_centres_(arms, options.allowed, options.searched, covers_),
        at_ends_(arms, options.allowed, options.searched, covers_),
        at_usual_ends_(arms, options.allowed, options.searched, covers_) {
    COLLAGE_CHECK(evidence.size() == arms.kernels.kernels().size(), "evidence is not of these kernels");
    is_allowed_.assign(evidence.size(), options.allowed.empty());
    for (size_t c = 0; c < options.allowed.size(); ++c) {
      for (const size_t kernel : arms.kernel_of[c]) {
        if (options.allowed[c] && kernel != Arms::kNoKernel) is_allowed_[kernel] = true;
      }
    }
    prices_ = Believe(arms_.kernels, evidence_, options_.declared);
  }

  Result<Decision> Run() {
    while (!COLLAGE_TRY(Step())) {
      if (options_.report) options_.report(open_, best_ ? &*best_ : nullptr);
    }
    return Decision{*best_, open_, is_settled_};
  }

 private:
  [[nodiscard]] bool IsOver() const { return !measurer_ || measurer_->IsOver(); }

  /// True when there is nothing more to do.
  Result<bool> Step() {
    if (!FindBest()) {
      COLLAGE_TRY_STATUS(MakePossible());
      return false;
    }
    if (options_.rival.IsKnown()) {
      const Cost worth_it = Cost::Seconds((1 - options_.declared.smallest_difference) * options_.rival.ToSeconds());
      const Cost least = COLLAGE_TRY(at_ends_.SearchBelow(Lows(prices_), options_.rival, worth_it)).lower_bound;
      if (least >= worth_it) {
        open_ = std::max(0.0, 1 - least.ToSeconds() / best_->cost.ToSeconds());
        is_settled_ = true;
        return true;
      }
    }
    if (!COLLAGE_TRY(Challenge())) return false;
    if (!is_settled_ || IsOver()) return true;
    // A plan of fewer partitions that cannot be told from the best one is preferred, once it is known as well.
    const SearchResult fewer = WithFewerPartitions(at_centres_, Centres(prices_), *best_, options_.declared.smallest_difference);
    if (HasRun(fewer.choices)) return true;
    return MeasureCover(fewer.choices);
  }

  bool FindBest() {
    Result<SearchResult> best = at_centres_.Search(Centres(prices_));
    best_.reset();
    if (best) best_ = std::move(*best);
    return best_.has_value();
  }

  /// Until there is a cover of known kernels, what a possible one needs is measured.
  Status MakePossible() {
    const bool is_some_plan_known = options_.rival.IsKnown() || options_.incumbent.IsKnown();
    if (is_some_plan_known && measurer_ && measurer_->IsOver()) return Fail(kTimeEnded);
    const SearchResult cover = COLLAGE_TRY(FirstCover());
    const std::vector<size_t> unknown = UnknownIn(cover.choices);
    // A search that a limit has ended may find a cover at one price and none at another.
    if (unknown.empty()) return Fail("no valid cover of what is known was found within the limits of the search");
    if (!measurer_) return Fail("what the cheapest plan needs has not been measured");
    return MeasureSome(unknown, /*all=*/measurer_->IsOver());
  }

  /// The cheapest possible one. Of kernels that hold one heavy operator each where those suffice: they take least time, are parts of many
  /// others, and a program of many kernels tells how times alone and in programs compare. Where there is no time for that, the soonest.
  Result<SearchResult> FirstCover() {
    if (measurer_ && measurer_->IsOver()) return SoonestCover();
    std::vector<Cost> apart = Lows(prices_);
    for (size_t kernel = 0; kernel < apart.size(); ++kernel) {
      if (arms_.kernels.kernels()[kernel].heavy.size() > 1 && IsUnknown(kernel)) apart[kernel] = Cost::Invalid();
    }
    Result<SearchResult> cheapest = at_ends_.Search(apart);
    if (!cheapest) cheapest = at_ends_.Search(Lows(prices_));
    const bool is_late = cheapest && measurer_ && !HasTimeFor(cheapest->choices);
    return is_late ? SoonestCover() : std::move(cheapest);
  }

  /// A plan that cannot be there in time is not looked into.
  [[nodiscard]] bool HasTimeFor(const std::vector<SearchChoice>& cover) const {
    return measurer_ && measurer_->HasTimeFor(SecondsUntilItRuns(cover));
  }

  /// Each place has weights of its own, so a kernel is compiled at each; and once more to be timed where it is unknown.
  [[nodiscard]] double SecondsUntilItRuns(const std::vector<SearchChoice>& cover) const {
    double seconds = 0;
    for (const auto& [kernel, uses] : UsesOf(arms_, cover)) {
      seconds += uses * SecondsToCompile(kernel);
      if (IsUnknown(kernel)) seconds += kSecondsOfTiming + SecondsToCompile(kernel);
    }
    return seconds;
  }
  [[nodiscard]] double SecondsToCompile(size_t kernel) const { return arms_.kernels.kernels()[kernel].compile_seconds; }

  /// That which is likely to run soonest: a whole model, where others would ask for hundreds of kernels, or one kernel that every layer
  /// shares, where a compiler would take long over all layers. Timing a kernel is charged in equal shares to the places where it may stand.
  Result<SearchResult> SoonestCover() {
    std::vector<Cost> costs = Lows(prices_);
    const std::vector<size_t> places = PlacesOf(arms_, options_.allowed);
    for (size_t kernel = 0; kernel < costs.size(); ++kernel) {
      double seconds = SecondsToCompile(kernel);
      if (IsUnknown(kernel)) seconds += (kSecondsOfTiming + seconds) / static_cast<double>(std::max<size_t>(1, places[kernel]));
      costs[kernel] += Cost::Seconds(seconds);
    }
    return at_ends_.Search(costs);
  }

  Result<bool> Challenge() {
    const double worthwhile = options_.declared.smallest_difference * best_->cost.ToSeconds();
    // A cover that never ran as a whole is not believed to be the best.
    if (HasNoUpperEnd(best_->choices) || !HasRun(best_->choices)) {
      open_ = 1;
      if (IsOver()) return true;
      const std::vector<size_t> unknown = COLLAGE_TRY(UnknownWorthPricing(worthwhile));
      if (unknown.empty()) return MeasureCover(best_->choices);
      COLLAGE_TRY_STATUS(MeasureSome(unknown, /*all=*/false));
      return false;
    }
    while (true) {
      const std::vector<Cost> view = ViewAgainstBest();
      const Cost price_of_best = at_ends_.PriceOf(best_->choices, view);
      const Cost worth_it = Cost::Seconds(price_of_best.ToSeconds() - worthwhile);
      const SearchResult challenger = COLLAGE_TRY(at_ends_.SearchBelow(view, price_of_best, worth_it));
      const double gain = price_of_best.ToSeconds() - challenger.lower_bound.ToSeconds();
      open_ = std::max(0.0, gain / price_of_best.ToSeconds());
      is_settled_ = challenger.lower_bound >= worth_it;
      if (is_settled_) return true;
      const std::vector<size_t> unknown = UnknownIn(challenger.choices);
      if (unknown.empty() && !HasNoUpperEnd(challenger.choices) && HasRun(challenger.choices)) {
        const Difference difference = DifferenceTo(challenger.choices);
        open_ = std::max(0.0, difference.most_gain / best_->cost.ToSeconds());
        if (difference.most_gain <= worthwhile && SettleAll(difference.kernels)) continue;
        // Whichever of the two is known less; a cover that only a limit of the search makes seem possible cannot be told better.
        if (IsOver() || difference.kernels.empty()) return true;
        return MeasureCover(difference.best_is_known_less ? best_->choices : challenger.choices);
      }
      if (!HasTimeFor(challenger.choices)) return true;
      // Where most of the doubt is the best cover's own, nothing else tells more than to run that again.
      if (RadiusOf(best_->choices) > gain / 2) return MeasureCover(best_->choices);
      if (unknown.empty()) return MeasureCover(challenger.choices);
      const std::vector<size_t> likely = COLLAGE_TRY(UnknownInChallenger(at_usual_ends_, UsualLows(prices_), worthwhile));
      COLLAGE_TRY_STATUS(MeasureSome(likely.empty() ? unknown : likely, /*all=*/false));
      return false;
    }
  }

  /// What is unknown in the cover that may be the cheapest, as long as less time has gone into prices since the last program than into
  /// all programs: every price may bring another best cover, and not each of them is worth a program; one that is behind is worth none.
  Result<std::vector<size_t>> UnknownWorthPricing(double worthwhile) {
    if (!IsBehind() && seconds_since_program_ >= seconds_in_programs_) return std::vector<size_t>();
    std::vector<size_t> likely = COLLAGE_TRY(UnknownInChallenger(at_usual_ends_, UsualLows(prices_), worthwhile));
    return likely.empty() ? UnknownInChallenger(at_ends_, Lows(prices_), worthwhile) : std::move(likely);
  }

  [[nodiscard]] bool IsBehind() const { return options_.incumbent < best_->cost; }

  /// Unknown kernels of the cheapest cover where those of the best one are at their centres and all others at these lows; none where that
  /// gains nothing worthwhile on the best one and on the incumbent, or has no time.
  Result<std::vector<size_t>> UnknownInChallenger(PricedProblem& problem, std::vector<Cost> lows, double worthwhile) {
    for (const size_t kernel : KernelsOf(best_->choices)) lows[kernel] = prices_[kernel].centre;
    const Cost to_beat = IsBehind() ? options_.incumbent : best_->cost;
    const Cost worth_it = Cost::Seconds(to_beat.ToSeconds() - worthwhile);
    const SearchResult challenger = COLLAGE_TRY(problem.SearchBelow(lows, to_beat, worth_it));
    const bool is_worth_it = challenger.lower_bound < worth_it && HasTimeFor(challenger.choices);
    return is_worth_it ? UnknownIn(challenger.choices) : std::vector<size_t>();
  }

  /// By how much the price of a cover is in doubt, seconds: the root of the sum of squares, since doubt of different kernels is
  /// independent.
  [[nodiscard]] double RadiusOf(const std::vector<SearchChoice>& cover) const {
    double squares = 0;
    for (const auto& [kernel, uses] : UsesOf(arms_, cover)) squares += std::pow(uses * prices_[kernel].radius, 2);
    return std::sqrt(squares);
  }

  /// High for the kernels of the best cover, low for all others, and the centre where a whole comparison has settled it. The best cover
  /// as a whole is no dearer than its own doubt allows, so its kernels share that.
  [[nodiscard]] std::vector<Cost> ViewAgainstBest() const {
    std::vector<Cost> view = Lows(prices_);
    double sum = 0;
    const std::map<size_t, int> uses_of_best = UsesOf(arms_, best_->choices);
    for (const auto& [kernel, uses] : uses_of_best) sum += uses * prices_[kernel].radius;
    const double share = sum > 0 ? RadiusOf(best_->choices) / sum : 0;
    for (const auto& [kernel, uses] : uses_of_best)
      view[kernel] = prices_[kernel].radius > 0 ? prices_[kernel].centre + Cost::Seconds(share * prices_[kernel].radius)
                     : unseen_.contains(kernel) ? prices_[kernel].centre
                                                : prices_[kernel].high;
    for (const size_t kernel : settled_) view[kernel] = prices_[kernel].centre;
    return view;
  }

  /// By how much a cover of kernels that all have run in programs could be cheaper than the best one. Doubt of different kernels is
  /// independent, so that of a sum is the root of the sum of its squares; adding up the ends of all intervals, as the search has to, would
  /// take a plan of a hundred kernels for doubtful for ever.
  struct Difference {
    std::vector<size_t> kernels;  ///< that are more often in one cover than in the other
    double most_gain = 0;         ///< seconds
    bool best_is_known_less = false;
  };
  [[nodiscard]] Difference DifferenceTo(const std::vector<SearchChoice>& challenger) {
    std::map<size_t, int> more_in_best = UsesOf(arms_, best_->choices);
    for (const auto& [kernel, uses] : UsesOf(arms_, challenger)) more_in_best[kernel] -= uses;
    Difference difference;
    double squares = 0;
    size_t least_of_best = SIZE_MAX;
    size_t least_of_challenger = SIZE_MAX;
    for (const auto& [kernel, more] : more_in_best) {
      if (more == 0) continue;
      difference.kernels.push_back(kernel);
      squares += std::pow(more * prices_[kernel].radius, 2);
      size_t& least = more > 0 ? least_of_best : least_of_challenger;
      least = std::min(least, evidence_[kernel].in_program.size());
    }
    const std::vector<Cost> centres = Centres(prices_);
    difference.most_gain = at_centres_.PriceOf(best_->choices, centres).ToSeconds() - at_centres_.PriceOf(challenger, centres).ToSeconds() +
                           std::sqrt(squares);
    difference.best_is_known_less = least_of_best < least_of_challenger;
    return difference;
  }

  /// False when all of them were settled already.
  bool SettleAll(const std::vector<size_t>& kernels) {
    bool is_new = false;
    for (const size_t kernel : kernels) is_new = settled_.insert(kernel).second || is_new;
    return is_new;
  }

  /// False: go on.
  Result<bool> MeasureCover(const std::vector<SearchChoice>& cover) {
    const Clock::time_point start = Clock::now();
    const Measurer::Found found = COLLAGE_TRY(measurer_->MeasureInProgram(cover));
    seconds_in_programs_ += Clock::SecondsSince(start);
    seconds_since_program_ = 0;
    measured_ = Clock::now();
    COLLAGE_TRY_STATUS(Take(found));
    settled_.clear();
    const bool has_run = std::all_of(found.begin(), found.end(), [](const auto& one) { return one.second.invalid_reason.empty(); });
    for (const size_t kernel : KernelsOf(cover)) {
      if (has_run && evidence_[kernel].in_program.empty()) unseen_.insert(kernel);
    }
    prices_ = Believe(arms_.kernels, evidence_, options_.declared);
    return false;
  }

  /// Dearest first, or all. After each it would be worth asking again what is needed, were the answer free. One price seldom changes it,
  /// so asking may take a tenth of the time that measuring does: were all of it in vain, that is what the compile would lose.
  Status MeasureSome(std::vector<size_t> kernels, bool all) {
    constexpr double kMeasuringOverDeciding = 10;
    const double least_seconds = kMeasuringOverDeciding * Clock::SecondsSince(measured_);
    std::stable_sort(kernels.begin(), kernels.end(), [&](size_t a, size_t b) { return prices_[a].low > prices_[b].low; });
    const Clock::time_point start = Clock::now();
    const size_t at_once = COLLAGE_TRY(measurer_->AtOnce());
    if (!all) AddWhatComesNext(kernels, at_once);
    for (size_t next = 0; next < kernels.size();) {
      std::vector<size_t> asked;
      for (; next < kernels.size() && asked.size() < at_once; ++next) {
        const size_t kernel = all ? kernels[next] : CheapestToTellOf(kernels[next], asked);
        if (std::find(asked.begin(), asked.end(), kernel) == asked.end()) asked.push_back(kernel);
      }
      COLLAGE_TRY_STATUS(Take(COLLAGE_TRY(measurer_->MeasureEach(asked))));
      if (!all && (measurer_->IsOver() || Clock::SecondsSince(start) >= least_seconds)) break;
    }
    seconds_since_program_ += Clock::SecondsSince(start);
    measured_ = Clock::now();
    prices_ = Believe(arms_.kernels, evidence_, options_.declared);
    return {};
  }

  /// Fills up to `count` with what is likely to be asked for after `kernels`: what the cheapest cover without them does not know.
  void AddWhatComesNext(std::vector<size_t>& kernels, size_t count) {
    if (kernels.size() >= count) return;
    std::vector<Cost> lows = UsualLows(prices_);
    if (best_) {
      for (const size_t kernel : KernelsOf(best_->choices)) lows[kernel] = prices_[kernel].centre;
    }
    while (kernels.size() < count) {
      for (const size_t kernel : kernels) lows[kernel] = Cost::Invalid();
      const Result<SearchResult> without = at_usual_ends_.Search(lows);
      const std::vector<size_t> unknown = without ? UnknownIn(without->choices) : std::vector<size_t>();
      if (unknown.empty()) return;
      kernels.insert(kernels.end(), unknown.begin(), unknown.end());
    }
  }

  /// A kernel of many operators takes long to compile, to run and to compare, and may be one of hundreds like it. Where nothing is assumed
  /// of it, kernels with its operators apart come first, and then the smallest ones that hold several: what they say may rule it out.
  /// Others than those that are asked for already.
  [[nodiscard]] size_t CheapestToTellOf(size_t kernel, const std::vector<size_t>& asked) const {
    if (prices_[kernel].known != Price::Known::kNothing) return kernel;
    const auto is_smaller = [&](size_t a, size_t b) { return prices_[a].proved_low < prices_[b].proved_low; };
    const auto smallest_unknown = [&](std::span<const size_t> of) {
      size_t smallest = kernel;
      for (const size_t k : of) {
        const bool is_asked = std::find(asked.begin(), asked.end(), k) != asked.end();
        if (IsUnknown(k) && !is_asked && is_allowed_[k] && is_smaller(k, smallest)) smallest = k;
      }
      return smallest;
    };
    for (const std::span<const size_t> apart : arms_.kernels.ApartFrom(kernel)) {
      const bool is_some_known = std::any_of(apart.begin(), apart.end(), [&](size_t k) { return HasRun(k); });
      const size_t smallest = is_some_known ? kernel : smallest_unknown(apart);
      if (smallest != kernel) return smallest;
    }
    return smallest_unknown(arms_.kernels.AlsoWithSeveral(kernel));
  }

  // Asked of evidence, which is newer than prices while several kernels are measured one after another.
  [[nodiscard]] bool HasRun(size_t kernel) const { return !evidence_[kernel].alone.empty() || !evidence_[kernel].in_program.empty(); }
  [[nodiscard]] bool IsUnknown(size_t kernel) const { return !HasRun(kernel) && evidence_[kernel].invalid_reason.empty(); }

  Status Take(const Measurer::Found& found) {
    bool is_any = false;
    for (const auto& [kernel, evidence] : found) {
      Evidence& known = evidence_[kernel];
      known.alone.insert(known.alone.end(), evidence.alone.begin(), evidence.alone.end());
      known.in_program.insert(known.in_program.end(), evidence.in_program.begin(), evidence.in_program.end());
      if (!evidence.invalid_reason.empty()) known.invalid_reason = evidence.invalid_reason;
      is_any = true;
    }
    COLLAGE_CHECK(is_any, "a measurement has found nothing, so it would be asked for again");
    return {};
  }

  [[nodiscard]] std::set<size_t> KernelsOf(const std::vector<SearchChoice>& cover) const {
    std::set<size_t> kernels;
    for (const auto& [kernel, uses] : UsesOf(arms_, cover)) kernels.insert(kernel);
    return kernels;
  }

  [[nodiscard]] std::vector<size_t> UnknownIn(const std::vector<SearchChoice>& cover) const {
    std::vector<size_t> unknown;
    for (const size_t kernel : KernelsOf(cover)) {
      if (prices_[kernel].centre.IsUnknown()) unknown.push_back(kernel);
    }
    return unknown;
  }

  [[nodiscard]] bool HasNoUpperEnd(const std::vector<SearchChoice>& cover) const {
    const std::set<size_t> kernels = KernelsOf(cover);
    return std::any_of(kernels.begin(), kernels.end(),
                       [&](size_t kernel) { return prices_[kernel].high.IsUnknown() && !unseen_.contains(kernel); });
  }

  /// Whether each kernel of the cover has run inside of a program.
  [[nodiscard]] bool HasRun(const std::vector<SearchChoice>& cover) const {
    const std::set<size_t> kernels = KernelsOf(cover);
    return std::all_of(kernels.begin(), kernels.end(),
                       [&](size_t kernel) { return prices_[kernel].known == Price::Known::kInProgram || unseen_.contains(kernel); });
  }

  // With its comparison: a compile of SqueezeNet, all else of it included, took 107 s for 878 kernels.
  static constexpr double kSecondsOfTiming = 0.1;

  const Arms& arms_;
  std::vector<Evidence>& evidence_;
  Measurer* measurer_;
  const DecideOptions& options_;
  // What a search remembers of prices fits those that are nearly the same, so each view of them has a search of its own.
  std::shared_ptr<SharedCoverGraph> covers_;
  PricedProblem at_centres_;
  PricedProblem at_ends_;
  PricedProblem at_usual_ends_;
  std::vector<bool> is_allowed_;  // kernels of candidates that may be chosen
  std::vector<Price> prices_;
  std::optional<SearchResult> best_;
  std::unordered_set<size_t> settled_;         // kernels that whole comparisons have told apart, since the last program ran
  std::unordered_set<size_t> unseen_;          // kernels that have no step of their own in a program that was to hold them
  Clock::time_point measured_ = Clock::now();  // the end of what was measured last
  double seconds_in_programs_ = 0;
  double seconds_since_program_ = 0;  // that went into prices alone
  double open_ = 1;
  bool is_settled_ = false;
};

}  // namespace

std::vector<size_t> PlacesOf(const Arms& arms, const std::vector<bool>& allowed) {
  const SearchProblem& problem = arms.problem;
  std::vector<size_t> places(arms.kernels.kernels().size(), 0);
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    if (!allowed.empty() && !allowed[c]) continue;
    const size_t most = problem.node_count / std::max<size_t>(1, problem.candidates[c].inside.Count());
    for (const size_t kernel : arms.kernel_of[c]) {
      if (kernel != Arms::kNoKernel) places[kernel] = std::min(places[kernel] + 1, most);
    }
  }
  for (size_t tensor = 0; arms.conversion_kernel && tensor < problem.tensors.size(); ++tensor) {
    for (size_t from = 0; from < problem.layout_count; ++from) {
      for (size_t to = 0; to < problem.layout_count; ++to) {
        const size_t kernel = from == to ? Arms::kNoKernel : arms.conversion_kernel(tensor, from, to);
        if (kernel != Arms::kNoKernel) ++places[kernel];
      }
    }
  }
  return places;
}

Result<Measurer::Found> Measurer::MeasureEach(std::span<const size_t> kernels) {
  Found found;
  for (const size_t kernel : kernels) {
    Found of_one = COLLAGE_TRY(MeasureAlone(kernel));
    found.insert(found.end(), std::make_move_iterator(of_one.begin()), std::make_move_iterator(of_one.end()));
  }
  return found;
}

Result<Decision> Decide(const Arms& arms, std::vector<Evidence>& evidence, Measurer& measurer, const DecideOptions& options) {
  return Decider(arms, evidence, &measurer, options).Run();
}

Result<Bounds> BoundsOf(const Arms& arms, const std::vector<Price>& prices, const std::vector<bool>& allowed, const Decision& decision) {
  PricedProblem problem(arms, allowed);
  Bounds bounds;
  bounds.likely = COLLAGE_TRY(problem.BoundBelow(Lows(prices), decision.best.cost));
  bounds.proved = std::min(bounds.likely, COLLAGE_TRY(problem.BoundBelow(ProvedLows(prices), decision.best.cost)));
  // Also where time has ended before the best cover has run as a whole.
  bounds.open = std::min(decision.open, std::max(0.0, 1 - bounds.likely.ToSeconds() / decision.best.cost.ToSeconds()));
  return bounds;
}

Result<Decision> DecideFromKnown(const Arms& arms, const std::vector<Evidence>& evidence, const DecideOptions& options) {
  std::vector<Evidence> known = evidence;
  return Decider(arms, known, nullptr, options).Run();
}

}  // namespace collage
