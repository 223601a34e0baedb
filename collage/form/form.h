#pragma once

// Equivalent forms: other ways to compute some operators of a function. A form is a choice of the one search like any other: its
// operators are offered to every backend beside those that it stands for, and a cover computes either these or those.

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collage/dataflow/dataflow_graph.h"
#include "collage/dataflow/tensor_source.h"
#include "collage/pattern/rule.h"
#include "collage/support/progress.h"

namespace collage {

/// Candidates that hold operators of forms have at most so many: a form and what is fused to it. Larger regions of graph compilers would be
/// priced again for each set of forms inside of them. Which number it is hardly matters: with 4 to 64 the candidates of a BERT encoder are
/// 2836 to 2851, those of DenseNet-121 4846 to 5084, of DCGAN 230 to 251.
constexpr size_t kMostOperatorsAroundForms = 16;

/// One call that a form replaces, and what it is replaced by.
struct FormResult {
  Expr original;
  Expr replacement;
  IndexSet inside;  ///< calls that nobody needs once this one is replaced, itself among them; no other result's
};

/// What a rule has found, in nodes of the function.
struct FoundForm {
  IndexSet covered;  ///< calls that it stands for: those inside of its results, and what only all of the results together need
  std::vector<FormResult> results;
};

/// A rewrite rule, as a value: what matches, when it holds, and what computes the same.
struct FormRule {
  std::string name;  ///< as `--forbid forms:NAME` says it
  Pattern pattern;   ///< of calls and constants
  /// Whether the replacement computes the same, and is no more work than the original by more than a kernel could gain.
  std::function<Verdict(const Match&)> condition;
  /// For the root of each match, what computes it: of one match, or of several that `joins` takes together.
  std::function<Result<std::vector<Expr>>(const std::vector<Match>&)> replacement;
  /// Where set, matches that capture the same expression as "data" are one form, as many as this says belong with the first; never one
  /// alone.
  std::function<bool(const Match& first, const Match& other)> joins = {};
  /// Where set, it finds what no pattern describes, and stands for all of the above but the name.
  std::function<Result<std::vector<FoundForm>>(const DataflowGraph&)> find = {};
  /// A user's. Where it cannot be built, gives another type, or computes something else on inputs that suit what it stands for, that is no
  /// error: the place is refused, with the reason. Calls of constants in its replacement are computed at once.
  bool is_stated = false;
};

/// Where a user's rule matched and is no form.
struct RefusedForm {
  std::string rule;
  IndexSet covered;
  std::string reason;
};

/// The rules of this folder, in the order in which they are tried.
const std::vector<FormRule>& FormRules();

/// A user's rule.
FormRule StatedForm(std::string name, Pattern pattern, std::function<Verdict(const Match&)> condition,
                    std::function<Result<std::vector<Expr>>(const std::vector<Match>&)> replacement);
/// Those of this folder, and behind them these.
std::vector<FormRule> AllForms(const std::vector<FormRule>& stated);
/// Users' rules are told apart by names that no other rule has. Errors name the one that is wrong, and what would be right.
Status CheckNamesOfStated(const std::vector<FormRule>& stated);

/// A call of a form that gives results of it.
struct FormRoot {
  PostDfsIndex node = DataflowGraph::kNone;
  PostDfsIndex gate = DataflowGraph::kNone;  ///< the first of `covered` that gives a result
  IndexSet covered;                          ///< calls that it stands for
  IndexSet added;                            ///< the form's calls that it needs and no root before it does
};

/// Where a rule has matched. Nodes are those of FormedGraph::graph.
struct Form {
  std::string rule;
  IndexSet covered;                                            ///< calls that it stands for
  std::vector<FormResult> results;                             ///< in the order of the originals
  std::vector<std::pair<TensorSource, TensorSource>> tensors;  ///< what is replaced by what, traced to the calls that give them
  std::vector<FormRoot> roots;                                 ///< in the order of their gates; they share what is covered among them
};

/// A function and all its forms as one graph. Nodes of the function keep their numbers (but for the function itself, the last of them);
/// those of forms come behind, and are named by the origins of what they stand for.
struct FormedGraph {
  static constexpr size_t kNoForm = static_cast<size_t>(-1);
  /// Which root of which form a node is there for.
  struct Member {
    size_t form = kNoForm;
    size_t root = 0;
  };

  std::shared_ptr<const DataflowGraph> graph;
  Expr function;  ///< without forms
  std::vector<Form> forms;
  std::vector<Member> members = {};  ///< by node; empty where there is no form
  std::vector<RefusedForm> refused = {};

  [[nodiscard]] size_t FormOf(PostDfsIndex node) const { return members.empty() ? kNoForm : members[node].form; }
  /// Null for a call of the function.
  [[nodiscard]] const FormRoot* RootOf(PostDfsIndex node) const {
    return FormOf(node) == kNoForm ? nullptr : &forms[members[node].form].roots[members[node].root];
  }
  [[nodiscard]] const Expr& body() const { return function->As<Function>()->body; }
};

/// Whether a rule may be applied to these nodes of the function.
using MayReplace = std::function<bool(const FormRule& rule, const IndexSet& covered)>;

/// Every match of every rule whose results are all that is used of it. Linear in the graph and what matches; without matches the graph is
/// the function's own. What a rule builds is not matched again: forms do not nest. Errors are those of a replacement that cannot be built
/// or is of another type, which name the rule. What a user's rule finds is run on the reference executor first
/// (FormRule::is_stated); where that is to stop, the places that are left are refused.
Result<FormedGraph> FindForms(const std::shared_ptr<const DataflowGraph>& function, const std::vector<FormRule>& rules,
                              const MayReplace& may_replace = {}, const Progress& progress = {});

/// A function with some forms in place of what they stand for.
struct AppliedForms {
  Expr function;
  std::unordered_map<const ExprNode*, Expr> image;  ///< what became of each expression of the formed graph that is left
};
/// The forms must not overlap.
Result<AppliedForms> ApplyForms(const FormedGraph& formed, const std::vector<size_t>& forms);

/// Forms by their positions, in as few layers as first fit finds; those of a layer do not overlap, so they can be applied at once.
std::vector<std::vector<size_t>> LayersOfForms(const FormedGraph& formed);

}  // namespace collage
