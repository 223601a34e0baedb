#pragma once

// The rules, as functions that make values. Typical trees:
//   operator library   Primitive(Union(Composite(label1, DFPattern(pattern1)), ..))
//   graph compiler     Primitive(OnlyValid(Combine(OpPredicate(..), {any})))   for every region of a few operators
//                      Primitive(RegionCuts(..))                                for whole regions and their few-way cuts
//   native             Primitive(OnlyValid(Combine(OpCallByKind(), NativeCombiners())))

#include <functional>
#include <string>
#include <vector>

#include "collage/candidate/combiner.h"
#include "collage/candidate/rule.h"
#include "collage/pattern/rule.h"

namespace collage {

/// May this call of an operator be taken?
using CallPredicate = std::function<Verdict(const Expr& call)>;

/// Every match of a pattern that the check accepts.
Rule DFPatternRule(std::string name, Pattern pattern, std::function<Verdict(const Match&)> check = {});
/// Every match of a backend's rule that its check accepts, whether it states a pattern or how matches grow, as a function labelled
/// Composite.
Rule LabelledMatchesRule(PatternRule rule);
/// Every call of an operator that the predicate accepts; with `pull_constants`, constant arguments are inside too.
Rule OpPredicateRule(std::string name, CallPredicate supports, bool pull_constants = false);
/// Every call of an operator of a fusable kind (all but opaque) that the predicate, if any, accepts.
Rule OpCallByKindRule(CallPredicate supports = {});
/// Every expression that a test accepts. The others are not refused: the rule is not about them.
Rule SinglesRule(bool (*accept)(const DataflowGraph::Node&));
/// Every expression that may stay behind for the executor: all but calls of operators that fuse. (Opaque ones, such as shape_of, are in
/// no kernel.)
Rule HostRule();
/// Of these, all but calls of operators: what takes no time.
Rule NoCallRule();
/// Every call of an operator that is a view of its input (reshape): the executor does it without a kernel.
Rule ViewRule();

/// Each sub-graph becomes a function labelled Composite.
Rule CompositeRule(std::string label, Rule sub_rule);
/// Each sub-graph becomes a Primitive function, with Compiler unless that is empty.
Rule PrimitiveRule(std::string compiler, Rule sub_rule);
Rule UnionRule(std::vector<Rule> sub_rules);
Rule OnlyValidRule(SubGraphConfig config, Rule sub_rule);
/// Takes constants out of the inside sets. Extraction copies the constants that enter, so nothing is lost, and candidates that
/// share a constant do not exclude each other.
Rule ReleaseConstantsRule(Rule sub_rule);

/// Closes over all ways of joining what the sub-rule finds (combiner.h).
Rule CombineRule(std::vector<Combiner> combiners, CombineLimits limits, Rule sub_rule);
/// The largest regions made by joining touching sub-graphs of the sub-rule, disjoint and without a cycle among them: what
/// partition_for_<backend> would take. Tuples and projections whose neighbours are all in one region belong to it.
Rule MaximalRule(Rule sub_rule);
/// The same, but only the sub-graphs themselves are joined.
Rule MaxCoalesceRule(Rule sub_rule);

/// How many pieces of a maximal region are offered.
struct RegionCutLimits {
  /// All pieces between any two of so many cut points (and the region's ends): 8 give 45 pieces.
  size_t cut_points = 8;
  /// Pieces between neighbouring cut points, of so many more cut points.
  size_t fine_cut_points = 64;
};
/// The maximal regions of accepted calls, whole and in few pieces. A region is cut where a single value crosses, the cut
/// points chosen evenly by work; so the number of candidates of a region does not grow with its size.
Rule RegionCutsRule(CallPredicate supports, RegionCutLimits limits = {});
/// The groups that operator fusion by kind would make of the accepted calls, at most `max_operators` each.
Rule FusionGroupsRule(CallPredicate supports, size_t max_operators = 256);

}  // namespace collage
