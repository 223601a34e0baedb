#include "collage/driver/placement.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "collage/backend/registry.h"
#include "collage/candidate/library_calls.h"
#include "collage/cost/verification.h"
#include "collage/driver/candidates.h"
#include "collage/driver/placement_report.h"
#include "collage/driver/placement_state.h"
#include "collage/driver/restricted_prices.h"
#include "collage/driver/transitions.h"
#include "collage/ir/print.h"
#include "collage/ir/structural.h"
#include "collage/search/shortest_path.h"
#include "collage/support/hash.h"
#include "collage/support/log.h"

namespace collage {
namespace {

// Of few candidates all may be measured: that takes seconds.
constexpr size_t kMeasuredInAnyCase = 40;

}  // namespace

Placement::Placement(std::unique_ptr<State> state) : state_(std::move(state)) {}
Placement::Placement(Placement&&) noexcept = default;
Placement& Placement::operator=(Placement&&) noexcept = default;
Placement::~Placement() = default;

Result<Placement> Placement::Create(const Expr& function, const std::vector<PlacementTarget>& targets, Pricer& pricer,
                                    const Progress& progress, const UserConstraints& said) {
  auto state = std::make_unique<State>(function, targets, pricer, progress);
  progress.Report({"finding candidates", 0, 0, {}});
  std::vector<std::string> names;
  for (const PlacementTarget& target : targets) names.emplace_back(target.priced.backend->Name());
  state->constraints = COLLAGE_TRY(Constraints::Resolve(state->graph, names, said));
  FoundCandidates found = COLLAGE_TRY(FindCandidates(state->graph, targets, *state->constraints));
  state->candidates = std::move(found.candidates);
  state->refusals = std::move(found.refusals);
  for (const PlacementTarget& target : targets) state->backends.push_back(target.priced);
  state->prices = COLLAGE_TRY(CandidatePrices::Create(state->candidates, state->backends, pricer, progress));
  COLLAGE_TRY_STATUS(state->MakeProblem());
  COLLAGE_TRY_STATUS(state->prices->LoadInContext(state->ContextHash()));
  return Placement(std::move(state));
}

Status Placement::State::MakeProblem() {
  built = COLLAGE_TRY(BuildProblem(graph, candidates, targets.size(), [this](const TensorType& type, const Layout& from, const Layout& to) {
    Result<Cost> cost = pricer.PriceConversion(type, from, to);
    if (!cost && conversion_failure.empty()) conversion_failure = cost.error().message;
    return cost ? *cost : Cost::Invalid();
  }));
  const TransitionCosts transitions = COLLAGE_TRY(TransitionsBetween(targets, pricer, progress));
  built.problem.transition = TransitionMatrix(targets, transitions);
  FindCoverable();
  return {};
}

Status Placement::State::PriceFirstPlans() {
  if (std::exchange(first_plans_priced, true)) return {};
  for (const size_t target : Singles()) {
    const std::vector<bool> allowed = AllowedFor(target);
    SearchProblem problem = built.problem;
    for (size_t c = 0; c < candidates.size(); ++c) {
      for (size_t v = 0; v < problem.candidates[c].variants.size(); ++v)
        problem.candidates[c].variants[v].cost = allowed[c] ? prices->Roofline(c, v) : Cost::Invalid();
    }
    const Result<SearchResult> first = SearchShortestPath(problem);
    if (!first) continue;
    for (const auto& [c, v] : first->choices) {
      if (!progress.ShouldStop() && !prices->IsPriced(c, v)) COLLAGE_TRY_STATUS(prices->Price(c, v));
    }
  }
  return {};
}

Status Placement::PriceEverything() {
  const std::vector<bool> competing = state_->Competing();
  state_->prices->SetTrust(kNoTrust);
  for (size_t c = 0; c < state_->candidates.size(); ++c) {
    for (size_t v = 0; competing[c] && v < state_->candidates[c].variants.size() && !state_->progress.ShouldStop(); ++v) {
      if (!state_->prices->IsPriced(c, v)) COLLAGE_TRY_STATUS(state_->prices->Price(c, v));
    }
  }
  return {};
}

Result<Plan> Placement::Search() {
  const bool may_price = !state_->pricer.allows_only_cached() && !state_->prices->allows_only_known_in_context();
  if (may_price) COLLAGE_TRY_STATUS(state_->PriceFirstPlans());
  Result<Plan> plan = state_->SearchVerified("searched", state_->Competing());
  if (plan || state_->pricer.has_missed()) return plan;
  // Some operator has candidates that all turned out Invalid: then the fallback may take anything.
  spdlog::info("searching again with the fallback everywhere: {}", plan.error().message);
  return state_->SearchVerified("searched", std::vector<bool>(state_->candidates.size(), true));
}

std::vector<size_t> Placement::State::Singles() const {
  std::vector<size_t> singles;
  for (size_t target = 0; target < targets.size(); ++target) {
    if (!targets[target].is_fallback && !coverable[target].Empty()) singles.push_back(target);
  }
  return singles;
}

std::vector<size_t> Placement::Singles() const { return state_->Singles(); }

Result<std::optional<Plan>> Placement::SearchSingle(size_t target) {
  const std::string name(state_->targets[target].priced.backend->Name());
  Result<Plan> plan = state_->SearchVerified(name, state_->AllowedFor(target), {WhenStopped::kGiveUp, /*only_priced=*/true});
  if (!plan && state_->pricer.has_missed()) return Fail(plan.error());
  if (!plan) {
    spdlog::debug("no plan of {} alone: {}", name, plan.error().message);
    return std::optional<Plan>();
  }
  plan->is_single_backend = true;
  return std::optional(std::move(*plan));
}

Result<std::optional<Plan>> Placement::SearchTrustingContextFactors(double trust) {
  state_->prices->SetTrustInContextFactors(trust);
  Result<Plan> plan = state_->SearchVerified("searched", state_->Competing(), {WhenStopped::kGiveUp, /*only_priced=*/true});
  state_->prices->SetTrustInContextFactors(1);
  if (plan) return std::optional(std::move(*plan));
  if (state_->pricer.has_missed()) return Fail(plan.error());
  return std::optional<Plan>();
}

size_t Placement::RoundsInContext(const Plan& plan) const {
  size_t fewest = SIZE_MAX;
  for (const SearchChoice& choice : plan.result.choices) {
    if (!state_->candidates[choice.candidate].is_partition) continue;
    fewest = std::min(fewest, state_->prices->RoundsInContext(choice.candidate, choice.variant));
  }
  return fewest;
}

std::vector<double> Placement::State::HandOvers(const std::vector<SearchChoice>& choices) const {
  std::vector<double> seconds(choices.size(), 0);
  std::optional<size_t> last;
  for (size_t i = 0; i < choices.size() && !built.problem.transition.empty(); ++i) {
    const PricedCandidate& candidate = candidates[choices[i].candidate];
    if (!candidate.is_partition) continue;
    if (last) seconds[i] = built.problem.transition[*last][candidate.backend].ToSeconds();
    last = candidate.backend;
  }
  return seconds;
}

uint64_t Placement::State::ContextHash() const {
  uint64_t hash = StructuralHash(graph.function(), ForPricing());
  for (const std::vector<Cost>& row : built.problem.transition) {
    for (const Cost cost : row) hash = HashCombine(hash, static_cast<uint64_t>(std::llround(cost.ToSeconds() * 1e12)));
  }
  return hash;
}

Status Placement::LearnInContext(const Plan& plan, const std::unordered_map<std::string, std::vector<double>>& samples) {
  const std::vector<std::string> symbols = PartitionSymbols(state_->graph, state_->candidates, plan.result.choices);
  const std::vector<double> hand_overs = state_->HandOvers(plan.result.choices);
  // Equal layers at several places of the network share one price, which is that of all their runs.
  std::map<std::pair<uint64_t, std::string>, std::pair<SearchChoice, std::vector<double>>> by_kernel;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const auto found = samples.find(symbols[i]);
    if (symbols[i].empty() || found == samples.end()) continue;
    const SearchChoice& choice = plan.result.choices[i];
    const MeasurementKey& key = state_->prices->KeyOf(choice.candidate, choice.variant);
    auto& [representative, seconds] = by_kernel[{key.function_hash, key.backend + " " + key.variant}];
    representative = choice;
    // The search charges the hand-over from whatever runs before; here it would be charged a second time.
    for (double sample : found->second) seconds.push_back(std::max(sample - hand_overs[i], sample / 2));
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
  const std::vector<double> hand_overs = state_->HandOvers(plan.result.choices);
  std::unordered_map<std::string, Cost> known;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const SearchChoice& choice = plan.result.choices[i];
    if (symbols[i].empty() || state_->prices->RoundsInContext(choice.candidate, choice.variant) == 0) continue;
    known.emplace(symbols[i], state_->prices->CostInContext(choice.candidate, choice.variant) + Cost::Seconds(hand_overs[i]));
  }
  return known;
}

std::unordered_map<std::string, MeasurementKey> Placement::KeysOf(const Plan& plan) const {
  const std::vector<std::string> symbols = PartitionSymbols(state_->graph, state_->candidates, plan.result.choices);
  std::unordered_map<std::string, MeasurementKey> keys;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const SearchChoice& choice = plan.result.choices[i];
    if (!symbols[i].empty()) keys.emplace(symbols[i], state_->prices->KeyOf(choice.candidate, choice.variant));
  }
  return keys;
}

Status Placement::MarkInvalid(const Plan& plan, const MeasurementKey& key, const std::string& reason) {
  for (const SearchChoice& choice : plan.result.choices) {
    if (!state_->candidates[choice.candidate].is_partition) continue;
    if (state_->prices->KeyOf(choice.candidate, choice.variant) == key)
      return state_->prices->MarkInvalid(choice.candidate, choice.variant, reason);
  }
  return Fail("the kernel is none of the plan's: " + key.backend + " " + key.variant);
}

MeasurementKey Placement::State::KeyOfContextPricing() const {
  std::string names;
  for (const PlacementTarget& target : targets) names += std::string(target.priced.backend->Name()) + " " + target.priced.version + "; ";
  // Tuned kernels have not been tried in whole plans yet.
  if (const uint64_t tuning = prices->TuningHash(); tuning != 0) names += "tuned " + std::to_string(tuning);
  names += constraints->ToString();
  return pricer.KeyOf(ContextHash(), "pricing in context", "3", names);
}

Result<std::optional<FinishedContextPricing>> Placement::FindContextPricing() {
  const std::optional<Measurement> found = COLLAGE_TRY(state_->pricer.cache().Find(state_->KeyOfContextPricing()));
  if (!found || found->samples.empty()) return std::optional<FinishedContextPricing>();
  const auto number = [&](size_t at, double otherwise) { return at < found->samples.size() ? found->samples[at] - 1 : otherwise; };
  state_->search_complete = number(2, 1) != 0;
  return std::optional(FinishedContextPricing{Cost::Seconds(found->samples[0]), number(1, 0)});
}

Status Placement::StoreContextPricing(const FinishedContextPricing& finished) {
  // One more than what may be zero: samples in the cache are positive.
  return state_->pricer.cache().Store(
      state_->KeyOfContextPricing(),
      {{finished.lower_bound.ToSeconds(), 1 + finished.noise_floor, 1 + (state_->search_complete ? 1.0 : 0.0)}, {}});
}

void Placement::AllowOnlyKnownInContext(bool only) { state_->prices->AllowOnlyKnownInContext(only); }

Result<Plan> Placement::State::SearchVerified(const std::string& name, const std::vector<bool>& allowed, const LazySearchOptions& options) {
  const auto most = std::max(kMeasuredInAnyCase, static_cast<size_t>(kMostMeasured * static_cast<double>(prices->distinct())));
  while (true) {
    LimitedPrices limited(*prices, progress, most);
    RestrictedPrices restricted(limited, allowed);
    progress.Report({"searching", 0, 0, name});
    Result<LazySearchResult> found = SearchLazily(built.problem, restricted, {progress.report, &limited.stop()}, options);
    if (!conversion_failure.empty()) return Fail(conversion_failure);
    if (!found) return Fail(NameNode(found.error().message));
    if (!COLLAGE_TRY(VerifyChoices(found->result.choices))) continue;
    // What is priced later may settle what an earlier search had to leave open.
    const bool is_of_everything = options.when_stopped == WhenStopped::kPriceWhatIsNeeded && !prices->allows_only_known_in_context();
    if (is_of_everything) search_complete = found->is_complete;
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
  const PostDfsIndex index = built.nodes[node];
  return "no backend can run operator " + constraints->NameOf(index) + " of type " + ToString(graph[index].expr->type()) +
         "; rules tried: " + constraints->RulesTried(index, refusals);
}

void Placement::State::FindCoverable() {
  coverable.assign(targets.size(), {});
  for (size_t c = 0; c < candidates.size(); ++c) {
    const SearchCandidate& searched = built.problem.candidates[c];
    if (candidates[c].is_partition && !searched.variants.empty()) coverable[candidates[c].backend] |= searched.inside;
  }
}

bool Placement::State::IsFallback(size_t candidate) const {
  return candidates[candidate].is_partition && targets[candidates[candidate].backend].is_fallback;
}

std::vector<bool> Placement::State::Competing() const {
  std::vector<bool> competing(candidates.size());
  for (size_t c = 0; c < competing.size(); ++c) competing[c] = !IsFallback(c) || CoversOnlyOrphans(c);
  return competing;
}

std::vector<std::string> Placement::State::NodeNames() const {
  const auto names = PrintExpr(graph.function()).names;
  std::vector<std::string> of_nodes;
  for (PostDfsIndex index : built.nodes) {
    const auto name = names.find(graph[index].expr.get());
    of_nodes.push_back(name == names.end() ? "result" : name->second);
  }
  return of_nodes;
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
    const bool is_pinned = constraints->HoldsPinned(candidate.candidate.sub_graph.inside());
    allowed[c] =
        !candidate.is_partition || candidate.backend == backend || fills_a_gap || is_pinned || (IsFallback(c) && CoversOnlyOrphans(c));
  }
  return allowed;
}

Result<IRModule> Placement::Apply(const Plan& plan) const {
  const Cover cover = CoverOf(state_->graph, state_->candidates, plan.result.choices);
  return ApplyCover(IRModule::FromMain(state_->graph.function()), state_->graph, cover);
}

std::string Placement::Save(const Plan& plan) const {
  return SavePlan(state_->graph, CoverOf(state_->graph, state_->candidates, plan.result.choices));
}

Result<CompileReport> Placement::Report(const Plan& plan) const { return ReportOf(*state_, plan); }

RecordedProblem Placement::Record(const Plan& plan) const {
  std::vector<bool> allowed = state_->Competing();
  // A plan that needed the fallback elsewhere must be one of the record too.
  for (const SearchChoice& choice : plan.result.choices) allowed[choice.candidate] = true;
  const RestrictedPrices prices(*state_->prices, std::move(allowed));
  std::vector<std::string> backends;
  for (const PlacementTarget& target : state_->targets) backends.emplace_back(target.priced.backend->Name());
  std::vector<std::string> operators;
  for (PostDfsIndex index : state_->built.nodes) operators.push_back(CalledOp(state_->graph[index].expr)->name);
  RecordedProblem recorded = collage::Record(state_->built.problem, prices, std::move(backends), state_->NodeNames(), std::move(operators));
  for (const PricedCandidate& candidate : state_->candidates) {
    std::vector<std::string>& names = recorded.variants.emplace_back();
    for (const PricedVariant& variant : candidate.variants) names.push_back(variant.variant.name);
  }
  std::unordered_map<PostDfsIndex, size_t> node_of;
  for (size_t node = 0; node < state_->built.nodes.size(); ++node) node_of.emplace(state_->built.nodes[node], node);
  for (size_t c = 0; c < state_->candidates.size(); ++c) {
    for (const LibraryPart& part : LibraryParts(state_->candidates[c].candidate)) {
      const auto library = std::find(recorded.backends.begin(), recorded.backends.end(), part.library);
      if (library == recorded.backends.end()) continue;
      RecordedCall& call = recorded.calls.emplace_back(RecordedCall{c, static_cast<size_t>(library - recorded.backends.begin()), {}});
      part.inside.ForEach([&](PostDfsIndex index) {
        if (const auto node = node_of.find(index); node != node_of.end()) call.nodes.Add(node->second);
      });
    }
  }
  for (PostDfsIndex index : state_->built.nodes) recorded.onnx_nodes.push_back(state_->graph[index].expr->origin().OnnxNodes());
  recorded.chosen = plan.result.choices;
  return recorded;
}

CandidateCounts Placement::Counts() const {
  const PricerCounts& counts = state_->pricer.counts();
  return {state_->candidates.size(),
          state_->prices->distinct(),
          state_->prices->measured(),
          counts.rejected,
          {counts.measured, counts.cached, state_->prices->unpriced(), state_->prices->assumed()}};
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
