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

namespace collage {

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
};

/// The rules of this folder, in the order in which they are tried.
const std::vector<FormRule>& FormRules();

/// Where a rule has matched. Nodes are those of FormedGraph::graph.
struct Form {
  std::string rule;
  IndexSet covered;                                            ///< calls that it stands for
  IndexSet added;                                              ///< calls of its own
  std::vector<std::pair<Expr, Expr>> results;                  ///< what is replaced, and by what
  std::vector<std::pair<TensorSource, TensorSource>> tensors;  ///< the same, traced to the calls that give them
  PostDfsIndex gate = DataflowGraph::kNone;                    ///< the first of `covered` that gives a result
  PostDfsIndex root = DataflowGraph::kNone;                    ///< the one of `added` that gives all results
};

/// A function and all its forms as one graph. Nodes of the function keep their numbers (but for the function itself, the last of them);
/// those of forms come behind, and are named by the origins of what they stand for.
struct FormedGraph {
  std::shared_ptr<const DataflowGraph> graph;
  Expr function;  ///< without forms
  std::vector<Form> forms;
  std::vector<size_t> form_of;  ///< by node: the form that it is a call of; empty where there is no form

  static constexpr size_t kNoForm = static_cast<size_t>(-1);
  [[nodiscard]] size_t FormOf(PostDfsIndex node) const { return form_of.empty() ? kNoForm : form_of[node]; }
  [[nodiscard]] const Expr& body() const { return function->As<Function>()->body; }
};

/// Whether a rule may be applied to these nodes of the function.
using MayReplace = std::function<bool(const FormRule& rule, const IndexSet& covered)>;

/// Every match of every rule whose results are all that is used of it. Linear in the graph and what matches; without matches the graph is
/// the function's own. What a rule builds is not matched again: forms do not nest. Errors are those of a replacement that cannot be built
/// or is of another type, which name the rule.
Result<FormedGraph> FindForms(const std::shared_ptr<const DataflowGraph>& function, const std::vector<FormRule>& rules,
                              const MayReplace& may_replace = {});

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
