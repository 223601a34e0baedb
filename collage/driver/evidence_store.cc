#include "collage/driver/evidence_store.h"

#include <algorithm>
#include <bit>
#include <map>

#include "collage/cost/statistics.h"
#include "collage/support/hash.h"

namespace collage {

KnownThen WhatIsKnown(const std::vector<Evidence>& evidence) {
  KnownThen known;
  for (size_t kernel = 0; kernel < evidence.size(); ++kernel) {
    const KnownOfKernel now{!evidence[kernel].alone.empty(), evidence[kernel].in_program.size()};
    if (now != KnownOfKernel()) known.emplace(kernel, now);
  }
  return known;
}

Evidence ToEvidence(const Measurement& measurement) {
  Evidence evidence;
  evidence.invalid_reason = measurement.invalid_reason;
  for (size_t i = 0; i < std::min(measurement.samples.size(), measurement.anchors.size()); ++i)
    evidence.alone.push_back({measurement.samples[i], measurement.anchors[i]});
  return evidence;
}

double MedianAnchorSeconds(const std::vector<Evidence>& evidence, uint64_t anchor) {
  std::map<uint64_t, double> by_round;
  for (const Evidence& of_kernel : evidence) {
    for (const ProgramRow& row : of_kernel.in_program) {
      if (row.anchor == anchor) by_round.emplace(row.round, row.row.anchor_seconds);
    }
  }
  std::vector<double> seconds;
  for (const auto& [round, of_anchor] : by_round) seconds.push_back(of_anchor);
  return seconds.empty() ? 0 : Median(std::move(seconds));
}

Result<Evidence> EvidenceStore::Find(const PlacedKernel& kernel) const {
  Evidence evidence;
  if (const std::optional<Measurement> alone = COLLAGE_TRY(pricer_->Find(kernel.key))) evidence = ToEvidence(*alone);
  const std::optional<Measurement> rounds = COLLAGE_TRY(pricer_->FindInContext(kernel.key, context_));
  for (size_t i = 0; rounds && 2 * i + 1 < rounds->anchors.size() && i < rounds->samples.size(); ++i) {
    const double anchor_seconds = rounds->anchors[2 * i];
    // All kernels of a round have the anchor's time of that round, and no two rounds have the same.
    evidence.in_program.push_back(
        {{rounds->samples[i], anchor_seconds}, static_cast<uint64_t>(rounds->anchors[2 * i + 1]), std::bit_cast<uint64_t>(anchor_seconds)});
  }
  if (kernel.variant.uses_precision && evidence.invalid_reason.empty()) {
    const std::optional<Measurement> withdrawn = COLLAGE_TRY(pricer_->cache().Find(KeyOfWithdrawal(kernel)));
    if (withdrawn) evidence.invalid_reason = withdrawn->invalid_reason;
  }
  return evidence;
}

MeasurementKey EvidenceStore::KeyOfWithdrawal(const PlacedKernel& kernel) const {
  const uint64_t made = HashBytes(kernel.key.backend + " " + kernel.key.backend_version + " " + kernel.key.variant);
  return pricer_->KeyOf(Fact::kVerdict, HashCombine(kernel.key.function_hash, made), context_);
}

Result<std::vector<Evidence>> EvidenceStore::Load(const Placement& placement, std::vector<Evidence> known) const {
  for (size_t kernel = known.size(); kernel < placement.kernels.size(); ++kernel) {
    known.push_back(COLLAGE_TRY(Find(placement.kernels[kernel])));
    if (!then_) continue;
    const auto found = then_->find(kernel);
    const KnownOfKernel then = found == then_->end() ? KnownOfKernel() : found->second;
    if (!then.alone) known.back().alone.clear();
    std::vector<ProgramRow>& rounds = known.back().in_program;
    rounds.resize(std::min(rounds.size(), then.rounds));  // later ones stand behind
  }
  return known;
}

Status EvidenceStore::Withdraw(const PlacedKernel& kernel, const std::string& reason) {
  return pricer_->cache().Store(KeyOfWithdrawal(kernel), {{}, reason});
}

Status EvidenceStore::Add(const PlacedKernel& kernel, const ProgramRow& row) {
  Measurement rounds = COLLAGE_TRY(pricer_->FindInContext(kernel.key, context_)).value_or(Measurement());
  rounds.samples.push_back(row.row.seconds);
  rounds.anchors.push_back(row.row.anchor_seconds);
  rounds.anchors.push_back(static_cast<double>(row.anchor));
  return pricer_->StoreInContext(kernel.key, context_, rounds);
}

}  // namespace collage
