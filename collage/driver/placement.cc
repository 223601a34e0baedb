#include "collage/driver/placement.h"

#include <algorithm>
#include <map>

#include "collage/backend/registry.h"
#include "collage/cost/verification.h"
#include "collage/driver/candidates.h"
#include "collage/driver/placement_report.h"
#include "collage/driver/placement_state.h"
#include "collage/ir/structural.h"
#include "collage/support/log.h"

namespace collage {
namespace {

/// The prices of a placement with some candidates taken out.
class RestrictedPrices : public VariantPrices {
 public:
  RestrictedPrices(VariantPrices& prices, std::vector<bool> allowed) : prices_(prices), allowed_(std::move(allowed)) {}
  [[nodiscard]] Cost PriceOrBound(size_t c, size_t v) const override { return allowed_[c] ? prices_.PriceOrBound(c, v) : Cost::Invalid(); }
  [[nodiscard]] bool IsPriced(size_t c, size_t v) const override { return !allowed_[c] || prices_.IsPriced(c, v); }
  Status Price(size_t c, size_t v) override { return prices_.Price(c, v); }

 private:
  VariantPrices& prices_;
  std::vector<bool> allowed_;
};

}  // namespace

Placement::Placement(std::unique_ptr<State> state) : state_(std::move(state)) {}
Placement::Placement(Placement&&) noexcept = default;
Placement& Placement::operator=(Placement&&) noexcept = default;
Placement::~Placement() = default;

Result<Placement> Placement::Create(const Expr& function, const std::vector<PlacementTarget>& targets, Pricer& pricer,
                                    const Progress& progress) {
  auto state = std::make_unique<State>(function, targets, pricer, progress);
  progress.Report({"finding candidates", 0, 0, {}});
  state->candidates = COLLAGE_TRY(FindCandidates(state->graph, targets));
  for (const PlacementTarget& target : targets) state->backends.push_back(target.priced);
  state->prices = COLLAGE_TRY(CandidatePrices::Create(state->graph, state->candidates, state->backends, pricer, progress));
  state->built = COLLAGE_TRY(BuildProblem(state->graph, state->candidates, targets.size(),
                                          [s = state.get()](const TensorType& type, const Layout& from, const Layout& to) {
                                            Result<Cost> cost = s->pricer.PriceConversion(type, from, to);
                                            if (!cost && s->conversion_failure.empty()) s->conversion_failure = cost.error().message;
                                            return cost ? *cost : Cost::Invalid();
                                          }));
  COLLAGE_TRY_STATUS(state->prices->LoadInContext(StructuralHash(function, ForPricing())));
  state->FindCoverable();
  return Placement(std::move(state));
}

Result<Plan> Placement::Search() {
  std::vector<bool> all(state_->candidates.size(), true);
  for (size_t c = 0; c < all.size(); ++c) all[c] = !state_->IsFallback(c) || state_->CoversOnlyOrphans(c);
  Result<Plan> plan = state_->SearchVerified("searched", all);
  if (plan || state_->pricer.has_missed()) return plan;
  // Some operator has candidates that all turned out Invalid: then the fallback may take anything.
  spdlog::info("searching again with the fallback everywhere: {}", plan.error().message);
  return state_->SearchVerified("searched", std::vector<bool>(state_->candidates.size(), true));
}

Result<std::vector<Plan>> Placement::SingleBackendPlans() {
  std::vector<Plan> plans;
  for (size_t backend = 0; backend < state_->targets.size(); ++backend) {
    if (state_->targets[backend].is_fallback || state_->coverable[backend].Empty()) continue;
    const std::string name(state_->targets[backend].priced.backend->Name());
    Result<Plan> plan = state_->SearchVerified(name, state_->AllowedFor(backend));
    if (!plan && state_->pricer.has_missed()) return Fail(plan.error());
    if (!plan) {
      spdlog::info("no plan of {} alone: {}", name, plan.error().message);
      continue;
    }
    plan->is_single_backend = true;
    plans.push_back(std::move(*plan));
  }
  return plans;
}

size_t Placement::RoundsInContext(const Plan& plan) const {
  size_t fewest = SIZE_MAX;
  for (const SearchChoice& choice : plan.result.choices) {
    if (!state_->candidates[choice.candidate].is_partition) continue;
    fewest = std::min(fewest, state_->prices->RoundsInContext(choice.candidate, choice.variant));
  }
  return fewest;
}

Status Placement::LearnInContext(const Plan& plan, const std::unordered_map<std::string, std::vector<double>>& samples) {
  const std::vector<std::string> symbols = PartitionSymbols(state_->graph, state_->candidates, plan.result.choices);
  // Equal layers at several places of the network share one price, which is that of all their runs.
  std::map<std::pair<uint64_t, std::string>, std::pair<SearchChoice, std::vector<double>>> by_kernel;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const auto found = samples.find(symbols[i]);
    if (symbols[i].empty() || found == samples.end()) continue;
    const SearchChoice& choice = plan.result.choices[i];
    const MeasurementKey& key = state_->prices->KeyOf(choice.candidate, choice.variant);
    auto& [representative, seconds] = by_kernel[{key.function_hash, key.backend + " " + key.variant}];
    representative = choice;
    seconds.insert(seconds.end(), found->second.begin(), found->second.end());
  }
  for (const auto& [key, kernel] : by_kernel) {
    const auto& [choice, seconds] = kernel;
    // One entry a round, so that a layer that occurs often outweighs no other round.
    COLLAGE_TRY_STATUS(state_->prices->AddInContext(choice.candidate, choice.variant, Percentile(seconds, 0.5)));
  }
  return {};
}

std::unordered_map<std::string, Cost> Placement::KnownInContext(const Plan& plan) const {
  const std::vector<std::string> symbols = PartitionSymbols(state_->graph, state_->candidates, plan.result.choices);
  std::unordered_map<std::string, Cost> known;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const SearchChoice& choice = plan.result.choices[i];
    if (symbols[i].empty() || state_->prices->RoundsInContext(choice.candidate, choice.variant) == 0) continue;
    known.emplace(symbols[i], state_->prices->CostInContext(choice.candidate, choice.variant));
  }
  return known;
}

MeasurementKey Placement::State::KeyOfContextPricing() const {
  std::string names;
  for (const PlacementTarget& target : targets) names += std::string(target.priced.backend->Name()) + " " + target.priced.version + "; ";
  return pricer.KeyOf(StructuralHash(graph.function(), ForPricing()), "pricing in context", "1", names);
}

Result<bool> Placement::IsContextPricingDone() const {
  const std::optional<Measurement> found = COLLAGE_TRY(state_->pricer.cache().Find(state_->KeyOfContextPricing()));
  return found.has_value();
}

Status Placement::SetContextPricingDone() { return state_->pricer.cache().Store(state_->KeyOfContextPricing(), {}); }

void Placement::AllowOnlyKnownInContext(bool only) { state_->prices->AllowOnlyKnownInContext(only); }

Result<Plan> Placement::State::SearchVerified(const std::string& name, const std::vector<bool>& allowed) {
  while (true) {
    RestrictedPrices restricted(*prices, allowed);
    progress.Report({"searching", 0, 0, name});
    Result<LazySearchResult> found = SearchLazily(built.problem, restricted, progress);
    if (!conversion_failure.empty()) return Fail(conversion_failure);
    if (!found) return Fail(NameNode(found.error().message));
    if (!COLLAGE_TRY(VerifyChoices(found->result.choices))) continue;
    search_complete = search_complete && found->is_complete;
    unpriced = found->unpriced;
    return Plan{name, std::move(found->result), false};
  }
}

Result<bool> Placement::State::VerifyChoices(const std::vector<SearchChoice>& choices) {
  bool all_right = true;
  size_t done = 0;
  for (const SearchChoice& choice : choices) {
    const PricedCandidate& candidate = candidates[choice.candidate];
    ++done;
    if (!candidate.is_partition) continue;
    const MeasurementKey& key = prices->KeyOf(choice.candidate, choice.variant);
    if (COLLAGE_TRY(pricer.cache().IsVerified(key))) continue;
    progress.Report({"comparing kernels with the reference", done, choices.size(), key.backend + " " + key.variant});
    const Variant& variant = candidate.variants[choice.variant].variant;
    const Result<double> difference = pricer.Difference(candidate.extracted.function, *backends[candidate.backend].backend, variant);
    if (difference && *difference <= kTolerance) {
      COLLAGE_TRY_STATUS(pricer.cache().StoreVerified(key));
      continue;
    }
    const std::string reason =
        difference ? "differs from the reference by " + std::to_string(*difference) + " of the largest value" : difference.error().message;
    spdlog::info("{} {}: {}", key.backend, key.variant, reason);
    COLLAGE_TRY_STATUS(prices->MarkInvalid(choice.candidate, choice.variant, reason));
    all_right = false;
  }
  return all_right;
}

// An error of the search counts its own nodes; people know operators.
std::string Placement::State::NameNode(const std::string& message) const {
  const std::string prefix = "no valid candidate covers node ";
  if (message.rfind(prefix, 0) != 0) return message;
  const size_t node = std::stoul(message.substr(prefix.size()));
  if (node >= built.nodes.size()) return message;
  const Expr& call = graph[built.nodes[node]].expr;
  return "no backend can run operator " + CalledOp(call)->name + " of type " + ToString(call->type());
}

void Placement::State::FindCoverable() {
  coverable.resize(targets.size());
  for (size_t c = 0; c < candidates.size(); ++c) {
    const SearchCandidate& searched = built.problem.candidates[c];
    if (candidates[c].is_partition && !searched.variants.empty()) coverable[candidates[c].backend] |= searched.inside;
  }
}

bool Placement::State::IsFallback(size_t candidate) const {
  return candidates[candidate].is_partition && targets[candidates[candidate].backend].is_fallback;
}

bool Placement::State::CoversOnlyOrphans(size_t candidate) const {
  for (size_t backend = 0; backend < targets.size(); ++backend) {
    if (!targets[backend].is_fallback && coverable[backend].Intersects(built.problem.candidates[candidate].inside)) return false;
  }
  return true;
}

std::vector<bool> Placement::State::AllowedFor(size_t backend) const {
  std::vector<bool> allowed(candidates.size());
  for (size_t c = 0; c < candidates.size(); ++c) {
    const PricedCandidate& candidate = candidates[c];
    const bool is_generated = candidate.is_partition && targets[candidate.backend].priced.style == BackendRules::Style::kNative;
    const bool fills_a_gap = is_generated && !coverable[backend].Intersects(built.problem.candidates[c].inside);
    allowed[c] = !candidate.is_partition || candidate.backend == backend || fills_a_gap || (IsFallback(c) && CoversOnlyOrphans(c));
  }
  return allowed;
}

Result<IRModule> Placement::Apply(const Plan& plan) const { return ApplyChoices(state_->graph, state_->candidates, plan.result.choices); }

Result<CompileReport> Placement::Report(const Plan& plan) const { return ReportOf(*state_, plan); }

CandidateCounts Placement::Counts() const {
  const PricerCounts& counts = state_->pricer.counts();
  return {state_->candidates.size(), state_->prices->distinct(), counts.measured, counts.cached, counts.rejected, state_->unpriced};
}

LowerOptions Placement::LoweringOptions() const {
  LowerOptions lower;
  lower.device = state_->pricer.device();
  lower.find_backend = [device = lower.device](const std::string& name) { return FindBackend(name, device); };
  return lower;
}

const Expr& Placement::function() const { return state_->graph.function(); }
size_t Placement::OperatorCount() const { return state_->built.nodes.size(); }
Pricer& Placement::pricer() const { return state_->pricer; }

}  // namespace collage
