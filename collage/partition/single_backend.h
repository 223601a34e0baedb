#pragma once

#include <string>
#include <vector>

#include "collage/partition/cover.h"

namespace collage {

/// The greedy plan that uses one backend wherever it can (partition_for_<backend>), made from the candidates that were found:
/// labelled matches in table order, the last root first, as merge-composite takes them; regions and fusion groups largest
/// first, earliest first where equally large. What it cannot take falls to native groups, then to `fallback` (single calls;
/// may be null). Views and all that is no call stay with the host. Errors name a call that nobody takes, or a backend without
/// candidates.
Result<Cover> SingleBackendCover(const DataflowGraph& graph, const std::vector<CandidatePartition>& candidates, const std::string& backend,
                                 const SpecPointer& fallback);

}  // namespace collage
