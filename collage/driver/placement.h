#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collage/dataflow/dataflow_graph.h"
#include "collage/driver/constraints.h"
#include "collage/explain/report.h"
#include "collage/lower/lower.h"
#include "collage/search/candidate_prices.h"
#include "collage/search/recorded.h"
#include "collage/support/progress.h"

namespace collage {

/// A backend that takes part, in the order in which the targets were given.
struct PlacementTarget {
  PricedBackend priced;
  BackendRules rules;
  std::string target;        ///< "cpu -compiler=dnnl"
  bool is_fallback = false;  ///< runs only what no other backend can
};

/// The backends that the targets name, and the reference as the fallback for operators that none of them runs. No targets: all that are
/// present. Errors name a target that cannot be parsed, an unknown compiler, or the reason of an absent one.
Result<std::vector<PlacementTarget>> ResolveTargets(const std::vector<std::string>& targets, const Device& device);

/// The cheapest plan, where another one was taken that cannot be told from it.
struct PlanTie {
  double within;      ///< share of its cost
  size_t partitions;  ///< of the cheapest
  Cost cost;
};

/// A cover of the function with its variants.
struct Plan {
  std::string name;
  SearchResult result;
  bool is_single_backend = false;
  std::optional<PlanTie> tie = {};
};

/// What earlier pricing in context has left.
struct FinishedContextPricing {
  Cost lower_bound;        ///< of all plans
  double noise_floor = 0;  ///< of the machine when prices were taken
};

/// Phases 1 to 4 for one function: candidates of all targets, their prices, searches over them, and the rewriting of the winner.
class Placement {
 public:
  static Result<Placement> Create(const Expr& function, const std::vector<PlacementTarget>& targets, Pricer& pricer,
                                  const Progress& progress, const UserConstraints& constraints = {});

  /// The cheapest cover by all backends; every kernel in it agrees with the reference. Prices what it needs to know for that, until
  /// kMostMeasured of the distinct candidates are measured; then it is the cheapest of what is priced.
  Result<Plan> Search();
  static constexpr double kMostMeasured = 0.4;
  /// Tunes the schedules of kernels that code was generated for, those of the best plan first, for as many seconds at most; the tuned ones
  /// join their templates as further variants. Only templates whose price is within a factor of their best rival's are tuned. What was
  /// tried is kept with the prices, so that whoever is stopped goes on there.
  Status Tune(double seconds);
  /// In how many rounds the kernel of the plan that was in the fewest was priced in context.
  [[nodiscard]] size_t RoundsInContext(const Plan& plan) const;
  /// Prices the plan's kernels in context: seconds of single runs of one round, by global_symbol, less the transition that the search
  /// charges before each. Rounds add up.
  Status LearnInContext(const Plan& plan, const std::unordered_map<std::string, std::vector<double>>& samples);
  /// What each of the plan's kernels that has a price in context should take in this plan, the transition before it included, by
  /// global_symbol.
  [[nodiscard]] std::unordered_map<std::string, Cost> KnownInContext(const Plan& plan) const;
  /// Keys of the plan's kernels in the cache, by global_symbol.
  [[nodiscard]] std::unordered_map<std::string, MeasurementKey> KeysOf(const Plan& plan) const;
  /// A kernel of the plan failed inside it: Invalid from now on. An error when it is none of the plan's.
  Status MarkInvalid(const Plan& plan, const MeasurementKey& key, const std::string& reason);
  /// When an earlier compile of this function for these backends has finished its pricing in context.
  [[nodiscard]] Result<std::optional<FinishedContextPricing>> FindContextPricing();
  Status StoreContextPricing(const FinishedContextPricing& finished);
  /// The cheapest plan of what is priced, if what is known of some kernels inside whole programs is trusted so far for others
  /// (CandidatePrices::SetTrustInContextFactors). Nothing when there is none.
  Result<std::optional<Plan>> SearchTrustingContextFactors(double trust);
  /// Of the plans that are dearer than the cheapest by no more than this share of it one with the fewest partitions, as far as a charge for
  /// each partition can find it: of what it gives up, each partition saves as much as any other could. The cheapest itself when that has no
  /// more. Nothing is priced.
  Result<Plan> WithFewerPartitions(const Plan& cheapest, double within);
  /// Which of two plans that take equally long is taken: that of fewer partitions, or of earlier backends.
  [[nodiscard]] bool IsPreferred(const Plan& a, const Plan& b) const;
  /// Whether plans are made of kernels priced in context only.
  void AllowOnlyKnownInContext(bool only);
  /// Prices everything that could be part of a plan, as far as there is time.
  Status PriceEverything();
  /// Looks for a cheaper plan among what assumptions alone have excluded: they are trusted less and less, and whatever a cheapest cover
  /// could then use is priced, until that share of the distinct candidates is measured or nothing is assumed any more.
  Status QuestionAssumptions(double most_measured);
  /// The least share of what is assumed of unmeasured kernels at which no cover would be cheaper by more than one in a hundred, at the
  /// prices known now; 0 where nothing needs to be assumed. To a hundredth.
  Result<double> AssumptionsHoldDownTo();
  static constexpr double kHoldsWithin = 0.01;
  /// No cover is cheaper than this at the prices known now, by rooflines alone.
  Result<Cost> ProvedLowerBound();
  /// Targets, by their position, whose backend can run some operator; the fallback is none of them.
  [[nodiscard]] std::vector<size_t> Singles() const;
  /// The cheapest plan that uses one target's backend wherever it can, and native code or the fallback where it cannot, of what the search
  /// over all backends has priced, which holds at least what that backend alone would do; more is priced only where that is no plan.
  /// Nothing when there is no such plan, or when the search was asked to stop before everything that it needs had been priced.
  Result<std::optional<Plan>> SearchSingle(size_t target);
  /// The plan with adjacent partitions of one graph compiler joined, wherever the joined one is valid and measured not slower than the two
  /// and the transition between them; nothing when that is nowhere. Joined candidates are added to those of the placement.
  Result<std::optional<Plan>> JoinAdjacentPartitions(const Plan& plan);
  /// The partitioned module of a plan.
  [[nodiscard]] Result<IRModule> Apply(const Plan& plan) const;
  /// A plan as text from which phase 4 runs alone (LoadPlan, ApplyCover).
  [[nodiscard]] std::string Save(const Plan& plan) const;

  /// What the report says of a plan.
  [[nodiscard]] Result<CompileReport> Report(const Plan& plan) const;
  /// Every price known now, with `plan` as the chosen one: what questions of the form "what if" are answered from.
  [[nodiscard]] RecordedProblem Record(const Plan& plan) const;
  [[nodiscard]] CandidateCounts Counts() const;
  [[nodiscard]] LowerOptions LoweringOptions() const;
  [[nodiscard]] const Expr& function() const;
  [[nodiscard]] size_t OperatorCount() const;
  [[nodiscard]] Pricer& pricer() const;

  Placement(Placement&&) noexcept;
  Placement& operator=(Placement&&) noexcept;
  ~Placement();

  struct State;

 private:
  explicit Placement(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace collage
