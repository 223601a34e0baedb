#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collage/dataflow/sub_graph.h"
#include "collage/ir/target.h"

namespace collage {

/// What a backend declined, for the report.
struct Refusal {
  std::string rule;
  IndexSet inside;
  std::string reason;
  std::string backend = {};  ///< the name of the spec whose rule it was
};

/// Finds sub-graphs. Base rules find them in the graph, combinators change or join what their sub-rules find. Results may
/// overlap and are without duplicates (equal inside sets with different nesting are different).
class PartitionRule {
 public:
  using Visitor = std::function<void(SubGraph)>;

  virtual ~PartitionRule() = default;
  /// Calls `visit` with each sub-graph as soon as it is found, so that what is made of it is made while it is in the caches.
  /// Refusals are appended to `refusals` where it is not null.
  virtual void ForEach(const DataflowGraph& graph, std::vector<Refusal>* refusals, const Visitor& visit) const = 0;

  [[nodiscard]] std::vector<SubGraph> AllSubGraphs(const DataflowGraph& graph, std::vector<Refusal>* refusals) const;
};

/// Rules are immutable and shared between the trees that they are part of.
using Rule = std::shared_ptr<const PartitionRule>;

/// How to find candidates, and whom they are for.
struct PartitionSpec {
  std::string name;  ///< the compiler's name, "native" or "host"
  std::vector<Target> targets;
  Rule rule;
  /// What stays behind for the executor, at no kernel cost.
  bool is_host = false;
};
using SpecPointer = std::shared_ptr<const PartitionSpec>;
/// For the same targets under the same name; a spec that was saved and loaded has no rule any more.
inline bool IsForTheSame(const PartitionSpec& a, const PartitionSpec& b) {
  return a.name == b.name && a.targets == b.targets && a.is_host == b.is_host;
}

/// A sub-graph that a spec would take: a plain value, a few pointers, that does not measure itself.
struct CandidatePartition {
  SubGraph sub_graph;
  SpecPointer spec;
};

/// Every candidate of one spec.
std::vector<CandidatePartition> AllCandidates(const DataflowGraph& graph, const SpecPointer& spec,
                                              std::vector<Refusal>* refusals = nullptr);
/// Of all specs in order; duplicates by inside set, nesting and targets removed.
std::vector<CandidatePartition> AllCandidates(const DataflowGraph& graph, const std::vector<SpecPointer>& specs,
                                              std::vector<Refusal>* refusals = nullptr);

}  // namespace collage
