#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collage/backend/backend.h"
#include "collage/partition/cover.h"

namespace collage {

/// A backend, and the spec whose candidates its partitions become.
struct SingleBackend {
  SpecPointer spec;
  const BackendRules* rules = nullptr;
};

/// Whether a partition can be built: success, or why not (no variant, found wrong before).
using CheckPartition = std::function<Status(const CandidatePartition& partition)>;

struct SingleBackendOptions {
  SingleBackend native;  ///< takes what the backend leaves; a spec of null: there is none
  SpecPointer fallback;  ///< takes single calls that native leaves; may be null
  CheckPartition check;  ///< not asked about the fallback; empty: what the rules accept and can be extracted can be built
};

struct SingleBackendPlan {
  /// Every node of the graph in one of them, host nodes included; acyclic.
  Cover cover;
  /// What the backend or native would have taken and `check` refused, with its reason, for the report.
  std::vector<Refusal> refusals;
};

/// The plan of partition_for_<backend>, greedy and unmeasured. A library's patterns become composites (FindComposites); what the backend
/// supports is annotated, de-conflicted with native below it and merged into the largest regions without a cycle, each one partition. What
/// is left is grouped by operator fusion for native, then call by call for the fallback; views and what is no call stay with the host. For
/// native itself the groups of operator fusion are the regions. A region that `check` refuses is tried composite by composite, or
/// call by call, before it falls to native. Errors name a call that nobody takes, or say why the backend takes no part at all.
Result<SingleBackendPlan> SingleBackendCover(const DataflowGraph& graph, const SingleBackend& backend,
                                             const SingleBackendOptions& options = {});

}  // namespace collage
