#include "collage/search/candidate_prices.h"

#include <algorithm>
#include <map>

#include "collage/backend/tuning.h"
#include "collage/cost/tuning.h"
#include "collage/ir/op_sequence.h"
#include "collage/ir/structural.h"
#include "collage/support/hash.h"

namespace collage {
namespace {

// A fused kernel skips what its dearest operator alone would write; this share leaves room for that.
constexpr double kAnchorShare = 0.8;

Cost Roofline(const Function& function, const DeviceLimits& limits) {
  const Result<OpSequence> sequence = ToOpSequence(function);
  if (!sequence) return Cost();
  double flops = 0;
  for (const OpSequence::Step& step : sequence->steps) flops += step.op->work(step.argument_types, step.result_type, step.attributes).flops;
  double bytes = 0;
  for (size_t value : sequence->parameters) bytes += static_cast<double>(sequence->values[value].type.ByteCount());
  for (size_t value : sequence->results) bytes += static_cast<double>(sequence->values[value].type.ByteCount());
  return Cost::Seconds(std::max(flops / limits.flops_per_second, bytes / limits.bytes_per_second));
}

size_t CallCount(const DataflowGraph& graph, const SubGraph& sub_graph) {
  size_t count = 0;
  sub_graph.inside().ForEach([&](PostDfsIndex index) { count += CalledOp(graph[index].expr) ? 1 : 0; });
  return count;
}

}  // namespace

DeviceLimits LimitsOf(const Device& device) {
  constexpr double kCyclesPerSecond = 5e9;
  constexpr double kFlopsPerCycle = 2 * 16 * 2;
  constexpr double kSavedByFastAlgorithms = 4;
  constexpr double kBytesPerCycle = 64;
  const double threads = device.threads;
  return {threads * kCyclesPerSecond * kFlopsPerCycle * kSavedByFastAlgorithms, threads * kCyclesPerSecond * kBytesPerCycle};
}

Result<CandidatePrices> CandidatePrices::Create(const DataflowGraph& graph, std::vector<PricedCandidate>& candidates,
                                                const std::vector<PricedBackend>& backends, Pricer& pricer, const Progress& progress) {
  CandidatePrices prices(candidates, backends, pricer, progress);
  std::map<std::pair<size_t, uint64_t>, std::vector<size_t>> slots_of_function;
  for (size_t c = 0; c < candidates.size(); ++c) {
    PricedCandidate& candidate = candidates[c];
    if (!candidate.is_partition) {
      // The host's candidates come with their variant, at no price.
      Slot slot{{}, candidate.variants.at(0).variant, Cost(), Cost(), {}, Cost(), {}, c};
      prices.slot_of_.push_back({prices.slots_.size()});
      prices.slots_.push_back(std::move(slot));
      continue;
    }
    const uint64_t hash = StructuralHash(candidate.extracted.function, ForPricing());
    const auto [at, is_new] = slots_of_function.try_emplace({candidate.backend, hash});
    if (is_new) at->second = COLLAGE_TRY(prices.SlotsFor(candidate, c, hash));
    prices.Give(candidate, at->second);
  }
  prices.FindAnchors(graph);
  return prices;
}

Result<std::vector<size_t>> CandidatePrices::SlotsFor(const PricedCandidate& candidate, size_t position, uint64_t hash) {
  const PricedBackend& backend = (*backends_)[candidate.backend];
  const Function& function = *candidate.extracted.function->As<Function>();
  ++distinct_;
  const Cost bound = Roofline(function, LimitsOf(pricer_->device()));
  std::vector<size_t> slots;
  for (Variant& variant : backend.backend->Variants(function, pricer_->device())) {
    Slot slot{pricer_->KeyOf(hash, std::string(backend.backend->Name()), backend.version, variant.name),
              std::move(variant),
              Cost::Unknown(),
              bound,
              {},
              Cost::Unknown(),
              {},
              position};
    slot.function = distinct_ - 1;
    if (const auto known = COLLAGE_TRY(pricer_->Find(slot.key))) SetPrice(slot, *known);
    slots.push_back(slots_.size());
    slots_.push_back(std::move(slot));
  }
  COLLAGE_TRY_STATUS(FindTuned(candidate, position, slots));
  return slots;
}

void CandidatePrices::Give(PricedCandidate& candidate, const std::vector<size_t>& slots) {
  slot_of_.push_back(slots);
  candidate.variants.clear();
  for (size_t slot : slots) candidate.variants.push_back({slots_[slot].variant, Cost::Unknown(), {}, slots_[slot].key});
}

Status CandidatePrices::AddLast(PricedCandidate& candidate) {
  const uint64_t hash = StructuralHash(candidate.extracted.function, ForPricing());
  const std::vector<size_t> slots = COLLAGE_TRY(SlotsFor(candidate, slot_of_.size(), hash));
  for (const size_t slot : slots) {
    std::optional<Measurement> known = COLLAGE_TRY(pricer_->FindInContext(slots_[slot].key, context_));
    if (!known) continue;
    slots_[slot].rounds_in_context = std::move(*known);
    slots_[slot].in_context = pricer_->ToCost(slots_[slot].rounds_in_context);
  }
  Give(candidate, slots);
  anchors_.emplace_back();
  return {};
}

Status CandidatePrices::FindTuned(const PricedCandidate& candidate, size_t position, std::vector<size_t>& slots) {
  const Backend& backend = *(*backends_)[candidate.backend].backend;
  const Function& function = *candidate.extracted.function->As<Function>();
  for (size_t i = 0, count = slots.size(); i < count; ++i) {
    const Slot base = slots_[slots[i]];
    const std::vector<TuningParameter> parameters = backend.Tuning(function, pricer_->device(), base.variant);
    if (parameters.empty()) continue;
    const std::optional<TuningRecord> record = COLLAGE_TRY(FindTuning(pricer_->cache(), base.key, parameters));
    if (!record) continue;
    Slot tuned = base;
    tuned.variant = TunedVariant(base.variant, parameters, record->choice);
    tuned.key.variant = tuned.variant.name;
    tuned.candidate = position;
    const std::optional<Measurement> known = COLLAGE_TRY(pricer_->Find(tuned.key));
    if (tuned.variant.name == base.variant.name || !known) continue;
    SetPrice(tuned, *known);
    slots.push_back(slots_.size());
    slots_.push_back(std::move(tuned));
  }
  return {};
}

Result<std::vector<size_t>> CandidatePrices::AddTuned(size_t candidate, size_t variant, Variant tuned, const Measurement& measurement) {
  const size_t base = slot_of_[candidate][variant];
  Slot slot = slots_[base];
  slot.variant = std::move(tuned);
  slot.key.variant = slot.variant.name;
  slot.rounds_in_context = {};
  slot.in_context = Cost::Unknown();
  SetPrice(slot, measurement);
  if (std::optional<Measurement> known = COLLAGE_TRY(pricer_->FindInContext(slot.key, context_))) {
    slot.rounds_in_context = std::move(*known);
    slot.in_context = pricer_->ToCost(slot.rounds_in_context);
  }
  slots_.push_back(std::move(slot));
  std::vector<size_t> sharing;
  for (size_t c = 0; c < slot_of_.size(); ++c) {
    if (std::find(slot_of_[c].begin(), slot_of_[c].end(), base) == slot_of_[c].end()) continue;
    slot_of_[c].push_back(slots_.size() - 1);
    sharing.push_back(c);
  }
  return sharing;
}

uint64_t CandidatePrices::TuningHash() const {
  uint64_t hash = 0;
  for (const Slot& slot : slots_) {
    // A sum, because those of earlier compiles come in another order.
    if (TemplateName(slot.variant.name) != slot.variant.name) hash += HashCombine(slot.key.function_hash, HashBytes(slot.variant.name));
  }
  return hash;
}

void CandidatePrices::FindAnchors(const DataflowGraph& graph) {
  anchors_.resize(candidates_->size());
  std::map<std::pair<size_t, PostDfsIndex>, size_t> single;
  const auto is_ours = [&](const PricedCandidate& candidate) {
    return candidate.is_partition && (*backends_)[candidate.backend].style == BackendRules::Style::kNative;
  };
  for (size_t c = 0; c < candidates_->size(); ++c) {
    const PricedCandidate& candidate = (*candidates_)[c];
    if (!is_ours(candidate) || CallCount(graph, candidate.candidate.sub_graph) != 1) continue;
    candidate.candidate.sub_graph.inside().ForEach([&](PostDfsIndex index) {
      const OpDef* op = CalledOp(graph[index].expr);
      if (op && op->kind == OpKind::kOutElementwiseFusable && !slot_of_[c].empty()) single.emplace(std::pair{candidate.backend, index}, c);
    });
  }
  for (size_t c = 0; c < candidates_->size(); ++c) {
    const PricedCandidate& candidate = (*candidates_)[c];
    if (!is_ours(candidate) || CallCount(graph, candidate.candidate.sub_graph) < 2) continue;
    candidate.candidate.sub_graph.inside().ForEach([&](PostDfsIndex index) {
      if (const auto at = single.find({candidate.backend, index}); at != single.end()) anchors_[c].push_back(at->second);
    });
  }
}

Cost CandidatePrices::AnchorBound(size_t candidate) const {
  Cost bound;
  for (size_t anchor : anchors_[candidate]) {
    Cost cheapest = Cost::Invalid();
    for (size_t slot : slot_of_[anchor]) cheapest = std::min(cheapest, PriceOf(slots_[slot]));
    if (cheapest.IsKnown()) bound = std::max(bound, Cost::Seconds(kAnchorShare * cheapest.ToSeconds()));
  }
  return bound;
}

Cost CandidatePrices::PriceOrBound(size_t candidate, size_t variant) const {
  const Slot& slot = slots_[slot_of_[candidate][variant]];
  if (only_known_in_context_ && slot.in_context.IsUnknown()) return Cost::Invalid();
  return IsPriced(slot) ? PriceOf(slot) : std::max(slot.bound, AnchorBound(candidate));
}

bool CandidatePrices::IsPriced(size_t candidate, size_t variant) const {
  return only_known_in_context_ || IsPriced(slots_[slot_of_[candidate][variant]]);
}

bool CandidatePrices::IsPriced(const Slot& slot) { return !slot.cost.IsUnknown() || !slot.in_context.IsUnknown(); }

Cost CandidatePrices::PriceOf(const Slot& slot) const {
  if (!slot.in_context.IsUnknown()) return slot.in_context;
  if (slot.cost.IsUnknown()) return slot.bound;
  return slot.cost.IsKnown() ? Cost::Seconds(slot.cost.ToSeconds() * ContextFactor(slot)) : slot.cost;
}

double CandidatePrices::ContextFactor(const Slot& slot) const {
  const auto at = least_factor_.find({slot.key.backend, slot.key.variant});
  return at == least_factor_.end() ? 1 : at->second;
}

// From scratch, because the median of several rounds may be above that of the first.
void CandidatePrices::UpdateContextFactors() {
  // The factor of a kernel of few microseconds is mostly the clock's.
  constexpr double kLeastSeconds = 5e-6;
  least_factor_.clear();
  for (const Slot& slot : slots_) {
    if (slot.rounds_in_context.samples.empty() || !slot.cost.IsKnown() || slot.cost.ToSeconds() < kLeastSeconds) continue;
    const double factor = slot.in_context.ToSeconds() / slot.cost.ToSeconds();
    const auto [at, is_new] = least_factor_.try_emplace({slot.key.backend, slot.key.variant}, factor);
    if (!is_new) at->second = std::min(at->second, factor);
  }
}

Status CandidatePrices::LoadInContext(uint64_t context) {
  context_ = context;
  for (Slot& slot : slots_) {
    if (slot.key.backend.empty()) continue;
    std::optional<Measurement> known = COLLAGE_TRY(pricer_->FindInContext(slot.key, context_));
    if (!known) continue;
    slot.rounds_in_context = std::move(*known);
    slot.in_context = pricer_->ToCost(slot.rounds_in_context);
  }
  UpdateContextFactors();
  return {};
}

Status CandidatePrices::AddInContext(size_t candidate, size_t variant, double seconds) {
  Slot& slot = slots_[slot_of_[candidate][variant]];
  slot.rounds_in_context.samples.push_back(seconds);
  slot.in_context = pricer_->ToCost(slot.rounds_in_context);
  UpdateContextFactors();
  return pricer_->StoreInContext(slot.key, context_, slot.rounds_in_context);
}

size_t CandidatePrices::RoundsInContext(size_t candidate, size_t variant) const {
  return slots_[slot_of_[candidate][variant]].rounds_in_context.samples.size();
}

Cost CandidatePrices::CostInContext(size_t candidate, size_t variant) const { return slots_[slot_of_[candidate][variant]].in_context; }

void CandidatePrices::SetPrice(Slot& slot, const Measurement& measurement) {
  slot.cost = pricer_->ToCost(measurement);
  slot.invalid_reason = measurement.invalid_reason;
}

Status CandidatePrices::MeasureSlot(Slot& slot) {
  if (!slot.cost.IsUnknown()) return {};
  const PricedCandidate& candidate = (*candidates_)[slot.candidate];
  slot.measured = true;
  progress_->Report({"measuring", ++priced_now_, 0, slot.key.backend + " " + slot.key.variant});
  Cost& rival = cheapest_.try_emplace(candidate.candidate.sub_graph.inside(), Cost::Unknown()).first->second;
  SetPrice(slot, COLLAGE_TRY(pricer_->Measure(slot.key, candidate.extracted.function, *(*backends_)[candidate.backend].backend,
                                              slot.variant, rival)));
  if (slot.cost.IsKnown() && (!rival.IsKnown() || slot.cost < rival)) rival = slot.cost;
  return {};
}

Status CandidatePrices::Price(size_t candidate, size_t variant) {
  for (size_t anchor : anchors_[candidate]) {
    bool is_news = false;
    for (size_t slot : slot_of_[anchor]) {
      is_news = is_news || slots_[slot].cost.IsUnknown();
      COLLAGE_TRY_STATUS(MeasureSlot(slots_[slot]));
    }
    // The bound has risen; whether this candidate is still wanted is for the next round to say.
    if (is_news) return {};
  }
  return MeasureSlot(slots_[slot_of_[candidate][variant]]);
}

Status CandidatePrices::MarkInvalid(size_t candidate, size_t variant, const std::string& reason) {
  Slot& slot = slots_[slot_of_[candidate][variant]];
  slot.cost = Cost::Invalid();
  slot.in_context = Cost::Invalid();
  slot.invalid_reason = reason;
  return pricer_->MarkInvalid(slot.key, reason);
}

size_t CandidatePrices::measured() const {
  std::vector<bool> is_measured(distinct_);
  for (const Slot& slot : slots_) {
    if (slot.measured) is_measured[slot.function] = true;
  }
  return static_cast<size_t>(std::count(is_measured.begin(), is_measured.end(), true));
}

size_t CandidatePrices::unpriced() const {
  return static_cast<size_t>(std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return !IsPriced(slot); }));
}

const MeasurementKey& CandidatePrices::KeyOf(size_t candidate, size_t variant) const { return slots_[slot_of_[candidate][variant]].key; }

const std::string& CandidatePrices::InvalidReason(size_t candidate, size_t variant) const {
  return slots_[slot_of_[candidate][variant]].invalid_reason;
}

}  // namespace collage
