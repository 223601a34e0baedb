#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collage/driver/placement.h"
#include "collage/search/problem.h"

namespace collage {

/// The inside of Placement, shared by the files that implement it.
struct Placement::State {
  State(const Expr& function, std::vector<PlacementTarget> placement_targets, Pricer& prices_of, const Progress& report)
      : graph(function), targets(std::move(placement_targets)), pricer(prices_of), progress(report) {}

  Result<Plan> SearchVerified(const std::string& name, const std::vector<bool>& allowed, const LazySearchOptions& options = {});
  /// Prices what each backend alone would do, as far as rooflines can tell: few and large kernels. That tells what the others have to beat,
  /// and every backend has a plan.
  Status PriceFirstPlans();
  /// No cover is cheaper than this at the prices known now, if assumptions are trusted so far.
  Result<Cost> LowerBound(const Trust& trust);
  /// Compares what has not been compared yet with the reference; false when something was wrong and is Invalid now.
  Result<bool> VerifyChoices(const std::vector<SearchChoice>& choices);
  [[nodiscard]] std::string NameNode(const std::string& message) const;
  [[nodiscard]] MeasurementKey KeyOfContextPricing() const;
  /// Of the function, and of the transitions that its prices in context leave out.
  [[nodiscard]] uint64_t ContextHash() const;
  /// Seconds that the search charges before each choice for the transition to its backend.
  [[nodiscard]] std::vector<double> HandOvers(const std::vector<SearchChoice>& choices) const;
  /// Names of the operator calls as the text form of the function numbers them, by search node.
  [[nodiscard]] std::vector<std::string> NodeNames() const;
  /// The search problem of the candidates as they are now.
  Status MakeProblem();
  void FindCoverable();
  /// All but the fallback's candidates for what another backend covers.
  [[nodiscard]] std::vector<bool> Competing() const;
  [[nodiscard]] bool IsFallback(size_t candidate) const;
  /// True when no other backend covers any of its operators.
  [[nodiscard]] bool CoversOnlyOrphans(size_t candidate) const;
  [[nodiscard]] std::vector<bool> AllowedFor(size_t backend) const;
  /// Targets, by their position, whose backend can run some operator; the fallback is none of them.
  [[nodiscard]] std::vector<size_t> Singles() const;

  DataflowGraph graph;
  std::optional<Constraints> constraints;
  std::vector<Refusal> refusals;
  std::vector<PlacementTarget> targets;
  Pricer& pricer;
  const Progress& progress;
  std::vector<PricedBackend> backends;
  std::vector<PricedCandidate> candidates;
  std::optional<CandidatePrices> prices;
  FunctionProblem built;
  std::vector<IndexSet> coverable;  // search nodes that each backend has a variant for
  std::string conversion_failure;
  bool search_complete = true;
  bool first_plans_priced = false;
};

}  // namespace collage
