#include "collage/search/candidate_prices.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "collage/backend/tuning.h"
#include "collage/candidate/library_calls.h"
#include "collage/cost/tuning.h"
#include "collage/ir/op_sequence.h"
#include "collage/ir/structural.h"
#include "collage/support/hash.h"

namespace collage {
namespace {

/// Equal for equal calls on tensors of equal types.
uint64_t NumberOf(const OpSequence::Step& step) {
  uint64_t number = HashCombine(HashBytes(step.op->name), step.attributes.Hash());
  for (const Type& type : step.argument_types) number = HashCombine(number, HashBytes(ToString(type)));
  return number;
}

KernelWork WorkOf(const Function& function, const DeviceLimits& limits) {
  KernelWork work;
  const Result<OpSequence> sequence = ToOpSequence(function);
  if (!sequence) return work;
  double flops = 0;
  for (const OpSequence::Step& step : sequence->steps) {
    flops += step.op->work(step.argument_types, step.result_type, step.attributes).flops;
    if (step.op->kind == OpKind::kOutElementwiseFusable) work.heavy.push_back(NumberOf(step));
  }
  std::sort(work.heavy.begin(), work.heavy.end());
  for (size_t value : sequence->parameters) work.bytes += static_cast<double>(sequence->values[value].type.ByteCount());
  for (size_t value : sequence->results) work.bytes += static_cast<double>(sequence->values[value].type.ByteCount());
  work.roofline = Cost::Seconds(std::max(flops / limits.flops_per_second, work.bytes / limits.bytes_per_second));
  return work;
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

Result<CandidatePrices> CandidatePrices::Create(std::vector<PricedCandidate>& candidates, const std::vector<PricedBackend>& backends,
                                                Pricer& pricer, const Progress& progress) {
  CandidatePrices prices(candidates, backends, pricer, progress);
  std::map<std::pair<size_t, uint64_t>, std::vector<size_t>> slots_of_function;
  for (size_t c = 0; c < candidates.size(); ++c) {
    PricedCandidate& candidate = candidates[c];
    if (!candidate.is_partition) {
      // The host's candidates come with their variant, at no price.
      Slot slot{{}, candidate.variants.at(0).variant, Cost(), {}, Cost(), {}, c};
      slot.function = prices.bounds_.AddFunction({});
      prices.slot_of_.push_back({prices.AddSlot(std::move(slot))});
      continue;
    }
    const uint64_t hash = StructuralHash(candidate.extracted.function, ForPricing());
    const auto [at, is_new] = slots_of_function.try_emplace({candidate.backend, hash});
    if (is_new) at->second = COLLAGE_TRY(prices.SlotsFor(candidate, c, hash));
    prices.Give(candidate, at->second);
  }
  prices.UpdateBounds();
  return prices;
}

Result<std::vector<size_t>> CandidatePrices::SlotsFor(const PricedCandidate& candidate, size_t position, uint64_t hash) {
  const PricedBackend& backend = (*backends_)[candidate.backend];
  const Function& function = *candidate.extracted.function->As<Function>();
  ++distinct_;
  KernelWork work = WorkOf(function, LimitsOf(pricer_->device()));
  work.backend = candidate.backend;
  // What a library computes inside tells nothing of kernels that are generated whole.
  for (const LibraryPart& part : LibraryParts(candidate.candidate)) work.backend = HashCombine(work.backend, HashBytes(part.library));
  const size_t number = bounds_.AddFunction(std::move(work));
  std::vector<size_t> slots;
  for (Variant& variant : backend.backend->Variants(function, pricer_->device())) {
    Slot slot{pricer_->KeyOf(hash, std::string(backend.backend->Name()), backend.version, variant.name),
              std::move(variant),
              Cost::Unknown(),
              {},
              Cost::Unknown(),
              {},
              position};
    slot.function = number;
    if (const auto known = COLLAGE_TRY(pricer_->Find(slot.key))) SetPrice(slot, *known);
    slots.push_back(AddSlot(std::move(slot)));
  }
  COLLAGE_TRY_STATUS(FindTuned(candidate, position, slots));
  return slots;
}

size_t CandidatePrices::AddSlot(Slot slot) {
  std::string layouts;
  for (const Layout& layout : slot.variant.inputs) layouts += layout.ToString() + " ";
  layouts += "-> ";
  for (const Layout& layout : slot.variant.outputs) layouts += layout.ToString() + " ";
  const size_t number = bounds_.AddVariant(slot.function, std::move(layouts));
  slots_.push_back(std::move(slot));
  return number;
}

void CandidatePrices::Give(PricedCandidate& candidate, const std::vector<size_t>& slots) {
  slot_of_.push_back(slots);
  candidate.variants.clear();
  for (size_t slot : slots) candidate.variants.push_back({slots_[slot].variant, Cost::Unknown(), {}, slots_[slot].key});
}

Status CandidatePrices::AddLast(PricedCandidate& candidate) {
  const uint64_t hash = StructuralHash(candidate.extracted.function, ForPricing());
  const std::vector<size_t> slots = COLLAGE_TRY(SlotsFor(candidate, slot_of_.size(), hash));
  for (const size_t slot : slots) COLLAGE_TRY_STATUS(FindInContext(slots_[slot]));
  Give(candidate, slots);
  UpdateBounds();
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
    slots.push_back(AddSlot(std::move(tuned)));
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
  COLLAGE_TRY_STATUS(FindInContext(slot));
  const size_t added = AddSlot(std::move(slot));
  UpdateBounds();
  std::vector<size_t> sharing;
  for (size_t c = 0; c < slot_of_.size(); ++c) {
    if (std::find(slot_of_[c].begin(), slot_of_[c].end(), base) == slot_of_[c].end()) continue;
    slot_of_[c].push_back(added);
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

Cost CandidatePrices::PriceOrBound(size_t candidate, size_t variant) const {
  const size_t at = slot_of_[candidate][variant];
  if (only_known_in_context_ && slots_[at].in_context.IsUnknown()) return Cost::Invalid();
  return IsPriced(slots_[at]) ? PriceOf(slots_[at]) : bounds_.Bound(at);
}

Cost CandidatePrices::Roofline(size_t candidate, size_t variant) const {
  const size_t at = slot_of_[candidate][variant];
  return slots_[at].cost.IsInvalid() ? Cost::Invalid() : bounds_.Roofline(at);
}

bool CandidatePrices::IsPriced(size_t candidate, size_t variant) const {
  return only_known_in_context_ || IsPriced(slots_[slot_of_[candidate][variant]]);
}

bool CandidatePrices::IsPriced(const Slot& slot) { return !slot.cost.IsUnknown() || !slot.in_context.IsUnknown(); }

Cost CandidatePrices::PriceOf(const Slot& slot) const {
  if (!slot.in_context.IsUnknown()) return slot.in_context;
  return slot.cost.IsKnown() ? Cost::Seconds(slot.cost.ToSeconds() * ContextFactor(slot)) : slot.cost;
}

double CandidatePrices::ContextFactor(const Slot& slot) const {
  const auto found = least_factor_of_variant_.find({slot.key.backend, slot.key.variant});
  const double of_variant = found == least_factor_of_variant_.end() ? 1 : found->second;
  if (trust_in_factors_ == 1) return of_variant;
  const auto of_backend = least_factor_of_backend_.find(slot.key.backend);
  if (of_backend == least_factor_of_backend_.end()) return of_variant;
  return std::pow(of_variant, trust_in_factors_) * std::pow(std::min(of_variant, of_backend->second), 1 - trust_in_factors_);
}

void CandidatePrices::SetTrustInContextFactors(double trust) {
  trust_in_factors_ = trust;
  UpdateBounds();
}

void CandidatePrices::UpdateBounds() {
  for (size_t slot = 0; slot < slots_.size(); ++slot) UpdateBound(slot);
}

void CandidatePrices::UpdateBound(size_t slot) {
  const bool is_priced = IsPriced(slots_[slot]);
  bounds_.SetPrice(slot, is_priced ? PriceOf(slots_[slot]) : Cost::Unknown(), slots_[slot].cost, slots_[slot].in_context.IsKnown());
}

// From scratch, because the median of several rounds may be above that of the first.
void CandidatePrices::UpdateContextFactors() {
  // The factor of a kernel of few microseconds is mostly the clock's.
  constexpr double kLeastSeconds = 5e-6;
  least_factor_of_variant_.clear();
  least_factor_of_backend_.clear();
  for (const Slot& slot : slots_) {
    if (slot.rounds_in_context.samples.empty() || !slot.cost.IsKnown() || slot.cost.ToSeconds() < kLeastSeconds) continue;
    const double factor = slot.in_context.ToSeconds() / slot.cost.ToSeconds();
    const auto lower = [&](auto& factors, const auto& key) {
      const auto [at, is_new] = factors.try_emplace(key, factor);
      if (!is_new) at->second = std::min(at->second, factor);
    };
    lower(least_factor_of_variant_, std::pair(slot.key.backend, slot.key.variant));
    lower(least_factor_of_backend_, slot.key.backend);
  }
  UpdateBounds();
}

Status CandidatePrices::LoadInContext(uint64_t context) {
  context_ = context;
  for (Slot& slot : slots_) {
    if (!slot.key.backend.empty()) COLLAGE_TRY_STATUS(FindInContext(slot));
  }
  UpdateContextFactors();
  return {};
}

Status CandidatePrices::FindInContext(Slot& slot) {
  // What was found wrong later is Invalid however fast it once was inside a plan.
  if (slot.cost.IsInvalid()) return {};
  std::optional<Measurement> known = COLLAGE_TRY(pricer_->FindInContext(slot.key, context_));
  if (!known) return {};
  slot.rounds_in_context = std::move(*known);
  slot.in_context = pricer_->ToCost(slot.rounds_in_context);
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
  slot.cost = pricer_->ToLeastCost(measurement);
  slot.invalid_reason = measurement.invalid_reason;
}

Rival CandidatePrices::RivalOf(const Slot& slot) const {
  const PricedCandidate& candidate = (*candidates_)[slot.candidate];
  return {slot.cost, &candidate.extracted.function, (*backends_)[candidate.backend].backend, &slot.variant};
}

Status CandidatePrices::MeasureSlot(size_t number) {
  Slot& slot = slots_[number];
  if (!slot.cost.IsUnknown()) return {};
  const PricedCandidate& candidate = (*candidates_)[slot.candidate];
  measured_.insert(slot.function);
  progress_->Report({"measuring", ++priced_now_, 0, slot.key.backend + " " + slot.key.variant});
  const auto [cheapest, is_first] = cheapest_.try_emplace(candidate.candidate.sub_graph.inside(), number);
  const Rival rival = is_first ? Rival() : RivalOf(slots_[cheapest->second]);
  SetPrice(slot, COLLAGE_TRY(pricer_->Measure(slot.key, candidate.extracted.function, *(*backends_)[candidate.backend].backend,
                                              slot.variant, rival)));
  if (slot.cost.IsKnown() && (!rival.price.IsKnown() || slot.cost < rival.price)) cheapest->second = number;
  return {};
}

Status CandidatePrices::Price(size_t candidate, size_t variant) {
  const size_t wanted = slot_of_[candidate][variant];
  std::vector<size_t> telling = bounds_.Telling(wanted);
  // When its bound has risen, whether it is still wanted is for the next round to say.
  if (telling.empty()) telling.push_back(wanted);
  for (const size_t slot : telling) {
    COLLAGE_TRY_STATUS(MeasureSlot(slot));
    UpdateBound(slot);
  }
  return {};
}

Status CandidatePrices::MarkInvalid(size_t candidate, size_t variant, const std::string& reason) {
  Slot& slot = slots_[slot_of_[candidate][variant]];
  slot.cost = Cost::Invalid();
  slot.in_context = Cost::Invalid();
  slot.invalid_reason = reason;
  UpdateBounds();
  return pricer_->MarkInvalid(slot.key, reason);
}

size_t CandidatePrices::unpriced() const {
  return static_cast<size_t>(std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return !IsPriced(slot); }));
}

size_t CandidatePrices::assumed() const {
  size_t count = 0;
  for (size_t at = 0; at < slots_.size(); ++at) count += !IsPriced(slots_[at]) && bounds_.Bound(at) > bounds_.Roofline(at) ? 1 : 0;
  return count;
}

const MeasurementKey& CandidatePrices::KeyOf(size_t candidate, size_t variant) const { return slots_[slot_of_[candidate][variant]].key; }

const std::string& CandidatePrices::InvalidReason(size_t candidate, size_t variant) const {
  return slots_[slot_of_[candidate][variant]].invalid_reason;
}

}  // namespace collage
