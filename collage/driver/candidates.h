#pragma once

#include <string>
#include <vector>

#include "collage/driver/placement.h"
#include "collage/ir/module.h"
#include "collage/search/problem.h"

namespace collage {

/// Phases 1 and 2: candidates of all targets for a function, extracted, with backends numbered as the targets; not priced yet. Views of
/// tensors may stay with the host. Candidates that cannot be extracted are left out.
Result<std::vector<PricedCandidate>> FindCandidates(const DataflowGraph& graph, const std::vector<PlacementTarget>& targets);

/// Phase 4: the module in which the chosen candidates are Primitive functions; those with a compiler carry "Compiler", all carry
/// "global_symbol" and "Variant".
Result<IRModule> ApplyChoices(const DataflowGraph& graph, const std::vector<PricedCandidate>& candidates,
                              const std::vector<SearchChoice>& choices);

/// The global_symbol that ApplyChoices gives to each choice; empty for what stays with the host.
std::vector<std::string> PartitionSymbols(const DataflowGraph& graph, const std::vector<PricedCandidate>& candidates,
                                          const std::vector<SearchChoice>& choices);

}  // namespace collage
