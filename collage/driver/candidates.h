#pragma once

#include <string>
#include <vector>

#include "collage/driver/constraints.h"
#include "collage/driver/placement.h"
#include "collage/partition/cover.h"
#include "collage/pricing/problem.h"

namespace collage {

struct FoundCandidates {
  std::vector<PricedCandidate> candidates;
  std::vector<Refusal> refusals;  ///< what rules declined
};

/// Phases 1 and 2: candidates of all targets of a placement for its function that keep to the user's constraints and to what is said of
/// devices, extracted, with backends numbered as the targets; not priced yet. Views of tensors may stay where their tensors are. Candidates
/// that cannot be extracted are left out. Errors are of the targets, or of a pin that leaves no candidate.
Result<FoundCandidates> FindCandidates(const Placement& placement);

/// Candidates that compute something of a form, together with what touches it: found in the function with all forms applied that do not
/// overlap, and once more for those that do. The backend of last resort has none, since what a form stands for is there.
Result<std::vector<PricedCandidate>> FindFormCandidates(const Placement& placement);

/// The chosen candidates as a plan: those with a compiler carry "Compiler", all carry "global_symbol" and "Variant", those on another
/// device than the host "Device", and those that use the permitted precision "Precision". What is done in place carries "Compiler" and
/// "Variant" only.
Cover CoverOf(const Placement& placement, const std::vector<SearchChoice>& choices);

/// The global_symbol that CoverOf gives to each choice; empty for what stays with the host.
std::vector<std::string> PartitionSymbols(const DataflowGraph& graph, const std::vector<PricedCandidate>& candidates,
                                          const std::vector<SearchChoice>& choices);

}  // namespace collage
