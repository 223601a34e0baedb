#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collage/candidate/rule.h"
#include "collage/ir/module.h"

namespace collage {

/// A candidate that a plan takes, and what its function says beside Primitive and Compiler ("Variant").
struct ChosenPartition {
  CandidatePartition candidate;
  Attributes attributes;
};
/// A plan: disjoint candidates. What none of them covers stays with the host.
using Cover = std::vector<ChosenPartition>;

/// Phase 4: the function with every partition replaced by a call of a Primitive function, composites inside. Partitions with a
/// Compiler get a global_symbol, "collage_<compiler>_<label>" or what the plan says, unique within the module: names that are used
/// already are numbered. `graph` is that of the module's @main. Errors name the operator that two
/// partitions have (constants and function literals are copied to all), or the partition that closes a cycle among them.
Result<IRModule> ApplyCover(const IRModule& module, const DataflowGraph& graph, const Cover& cover);

/// Whether a joined partition may take the place of two.
using MayJoin = std::function<bool(const CandidatePartition& joined, const CandidatePartition& first, const CandidatePartition& second)>;
/// Joins touching partitions of one spec that lie in one basic block while the contracted graph stays acyclic and `may_join`
/// (not slower, say) agrees. What the parts say beside Primitive and Compiler is dropped: it was about the parts.
Cover JoinAdjacent(const DataflowGraph& graph, Cover cover, const MayJoin& may_join);

/// The partitions of these compilers as plain operators again ("native" for Primitive functions without Compiler; empty: all),
/// composites inside included; so are composites elsewhere whose label names one of them. Literals, literals bound by let and
/// functions of the module are found; the last are removed when nothing calls them any more.
Result<IRModule> InlinePartitions(const IRModule& module, const std::vector<std::string>& compilers);

/// A plan as JSON: per partition its backend, target, inside nodes, nesting and attributes.
std::string SavePlan(const DataflowGraph& graph, const Cover& cover);
/// Errors on text that is no plan, or the plan of another program.
Result<Cover> LoadPlan(const DataflowGraph& graph, const std::string& text);

}  // namespace collage
