#include <algorithm>
#include <map>

#include "collage/dataflow/sub_graph.h"
#include "collage/form/form.h"
#include "collage/form/stated.h"
#include "collage/ir/visit.h"
#include "collage/pattern/matcher.h"
#include "collage/support/check.h"

namespace collage {
namespace {

/// A form before it is part of a graph.
struct Draft {
  const FormRule* rule;
  FoundForm found;
};

class Finder {
 public:
  Finder(const DataflowGraph& graph, const MayReplace& may_replace, const Progress& progress)
      : graph_(graph), may_replace_(may_replace), progress_(progress) {}

  Status Find(const FormRule& rule) {
    if (rule.find) {
      for (FoundForm& found : COLLAGE_TRY(rule.find(graph_))) {
        if (MayTake(rule, found.covered)) COLLAGE_TRY_STATUS(Take({&rule, std::move(found)}));
      }
      return {};
    }
    std::vector<PatternMatch> matches;
    ForEachMatch(graph_, rule.pattern, [&](PatternMatch match) {
      match.inside = CallsOf(match.inside);
      const bool is_unknown = matches.empty() || !(matches.back().inside == match.inside);
      if (is_unknown && !match.inside.Empty() && CanBeReplaced(match.inside) && rule.condition(match.match).accepted)
        matches.push_back(std::move(match));
    });
    for (const std::vector<const PatternMatch*>& group : Grouped(rule, matches)) COLLAGE_TRY_STATUS(Add(rule, group));
    return {};
  }

  [[nodiscard]] std::vector<Draft>& drafts() { return drafts_; }
  [[nodiscard]] std::vector<RefusedForm>& refused() { return refused_; }

 private:
  [[nodiscard]] IndexSet CallsOf(const IndexSet& inside) const {
    IndexSet calls;
    inside.ForEach([&](PostDfsIndex node) {
      if (graph_[node].op) calls.Add(node);
    });
    return calls;
  }

  /// In the function's own block, without what others use of its inside, and not left by a path that comes back.
  [[nodiscard]] bool CanBeReplaced(const IndexSet& calls) const {
    const SubGraph sub_graph(graph_, calls);
    return graph_[calls.First()].block == 0 && sub_graph.IsInOneBlock(graph_) && sub_graph.IsConvex(graph_) &&
           sub_graph.exit().size() == 1 && sub_graph.exit().front() == calls.Last();
  }

  [[nodiscard]] static std::vector<std::vector<const PatternMatch*>> Grouped(const FormRule& rule,
                                                                             const std::vector<PatternMatch>& matches) {
    std::vector<std::vector<const PatternMatch*>> groups;
    std::map<const ExprNode*, std::vector<size_t>> of_data;  // groups that read it
    for (const PatternMatch& match : matches) {
      if (!rule.joins) {
        groups.push_back({&match});
        continue;
      }
      std::vector<size_t>& candidates = of_data[match.match.Find("data").get()];
      const auto fits = [&](size_t group) { return rule.joins(groups[group].front()->match, match.match); };
      const auto at = std::find_if(candidates.begin(), candidates.end(), fits);
      if (at != candidates.end()) {
        groups[*at].push_back(&match);
      } else {
        candidates.push_back(groups.size());
        groups.push_back({&match});
      }
    }
    if (rule.joins) std::erase_if(groups, [](const auto& group) { return group.size() < 2; });
    return groups;
  }

  Status Add(const FormRule& rule, const std::vector<const PatternMatch*>& group) {
    IndexSet covered;
    for (const PatternMatch* match : group) covered |= match->inside;
    if (group.size() > 1 && !CanBeTakenTogether(covered, group.front()->inside)) return {};
    if (!MayTake(rule, covered)) return {};
    Result<FoundForm> built = Build(rule, group, covered);
    if (!rule.is_stated) {
      if (!built) return Fail(built.error().At("form " + rule.name));
      return Take({&rule, std::move(*built)});
    }
    progress_.Report({"comparing forms", ++compared_, 0, rule.name});
    const Verdict verdict =
        built ? ComputesTheSame(graph_, *built, [&] { return progress_.ShouldStop(); }) : Verdict::Reject(built.error().message);
    if (verdict.accepted) return Take({&rule, std::move(*built)});
    refused_.push_back({rule.name, covered, verdict.reason});
    return {};
  }

  [[nodiscard]] Result<FoundForm> Build(const FormRule& rule, const std::vector<const PatternMatch*>& group,
                                        const IndexSet& covered) const {
    FoundForm found{covered, {}};
    std::vector<Match> matches;
    std::vector<Origin> origins;
    for (const PatternMatch* match : group) matches.push_back(match->match);
    covered.ForEach([&](PostDfsIndex node) { origins.push_back(graph_[node].expr->origin()); });
    std::vector<Expr> built = COLLAGE_TRY(rule.replacement(matches));
    COLLAGE_CHECK(built.size() == matches.size(), "form " + rule.name + " does not give what it matched");
    const Expr all = MakeTuple(std::move(built));
    const Expr named = COLLAGE_TRY(Named(rule.is_stated ? COLLAGE_TRY(WithConstantsComputed(graph_, all)) : all, Origin::Union(origins)));
    for (size_t i = 0; i < matches.size(); ++i) found.results.push_back({matches[i].root, named->As<Tuple>()->fields[i], group[i]->inside});
    return found;
  }

  [[nodiscard]] bool MayTake(const FormRule& rule, const IndexSet& covered) const { return !may_replace_ || may_replace_(rule, covered); }

  Status Take(Draft draft) {
    std::vector<FormResult>& results = draft.found.results;
    for (const auto& [original, replacement, inside] : results) {
      if (replacement->type() != original->type())
        return Fail("form " + draft.rule->name + " makes " + ToString(replacement->type()) + " of " + ToString(original->type()));
    }
    std::sort(results.begin(), results.end(),
              [&](const FormResult& a, const FormResult& b) { return graph_.IndexOf(a.original) < graph_.IndexOf(b.original); });
    drafts_.push_back(std::move(draft));
    return {};
  }

  /// None hangs on another one, and all that is computed for any of them is computed for the first.
  [[nodiscard]] bool CanBeTakenTogether(const IndexSet& covered, const IndexSet& first) const {
    IndexSet read;
    first.ForEach([&](PostDfsIndex node) {
      for (const PostDfsIndex input : graph_[node].inputs) read.Add(input);
    });
    bool are_there = SubGraph(graph_, covered).IsConvex(graph_);
    (covered - first).ForEach([&](PostDfsIndex node) {
      for (const PostDfsIndex input : graph_[node].inputs) {
        const bool is_computed = !graph_[input].Is<Constant>() && !graph_[input].Is<Var>();
        are_there = are_there && (!is_computed || covered.Contains(input) || read.Contains(input));
      }
    });
    return are_there;
  }

  /// Calls that are new, with the origins of what they replace.
  [[nodiscard]] Result<Expr> Named(const Expr& built, const Origin& origin) const {
    const auto is_new = [&](const Expr& expr) { return !expr->As<Op>() && graph_.Find(expr) == DataflowGraph::kNone; };
    const auto name = [&](const Expr&, const Expr& expr) -> Result<Expr> {
      return expr->As<Call>() && is_new(expr) ? WithOrigin(expr, origin) : expr;
    };
    return Rewrite(built, name, is_new);
  }

  const DataflowGraph& graph_;
  const MayReplace& may_replace_;
  const Progress& progress_;
  size_t compared_ = 0;
  std::vector<Draft> drafts_;
  std::vector<RefusedForm> refused_;
};

/// The calls of a form that this one needs, itself among them, and that are not in `known`.
IndexSet NeededBy(const DataflowGraph& graph, size_t first_added, PostDfsIndex root, const IndexSet& known) {
  IndexSet needed;
  std::vector<PostDfsIndex> pending = {root};
  while (!pending.empty()) {
    const PostDfsIndex node = pending.back();
    pending.pop_back();
    if (graph[node].op && (needed.Contains(node) || known.Contains(node))) continue;
    if (graph[node].op) needed.Add(node);
    for (const PostDfsIndex input : graph[node].inputs) {
      if (input >= first_added && !graph[input].Is<Constant>()) pending.push_back(input);
    }
  }
  return needed;
}

/// The numbers of a form in the whole graph; false where a result is given by no call of it.
bool Number(const DataflowGraph& graph, size_t first_added, Form& form) {
  IndexSet added;
  IndexSet left = form.covered;  // what is inside of no result
  for (const auto& [original, replacement, inside] : form.results) {
    const TensorSource gives = ResolveTensor(graph, {graph.IndexOf(replacement), 0});
    const PostDfsIndex replaced = graph.IndexOf(original);
    if (gives.node < first_added || !graph[gives.node].op) return false;
    form.tensors.emplace_back(gives, TensorSource{replaced, 0});
    const auto has_root = [&](const FormRoot& root) { return root.node == gives.node; };
    auto at = std::find_if(form.roots.begin(), form.roots.end(), has_root);
    if (at == form.roots.end()) {
      at = form.roots.insert(at, {gives.node, replaced, {}, NeededBy(graph, first_added, gives.node, added)});
      added |= at->added;
    }
    at->covered |= inside;
    left -= inside;
  }
  form.roots.front().covered |= left;
  return true;
}

}  // namespace

Result<FormedGraph> FindForms(const std::shared_ptr<const DataflowGraph>& function, const std::vector<FormRule>& rules,
                              const MayReplace& may_replace, const Progress& progress) {
  const Function& of = *function->function()->As<Function>();
  Finder finder(*function, may_replace, progress);
  for (const FormRule& rule : rules) COLLAGE_TRY_STATUS(finder.Find(rule));
  FormedGraph formed{function, function->function(), {}, {}, std::move(finder.refused())};
  if (finder.drafts().empty()) return formed;
  std::vector<Expr> bodies = {of.body};
  for (Draft& draft : finder.drafts()) {
    for (const FormResult& result : draft.found.results) bodies.push_back(result.replacement);
    formed.forms.push_back({draft.rule->name, std::move(draft.found.covered), std::move(draft.found.results), {}, {}});
  }
  formed.graph = std::make_shared<const DataflowGraph>(COLLAGE_TRY(MakeFunction(of.parameters, MakeTuple(std::move(bodies)))));
  const size_t first_added = function->size() - 1;
  for (PostDfsIndex node = 0; node < first_added; ++node)
    COLLAGE_CHECK((*formed.graph)[node].expr == (*function)[node].expr, "a form changes the numbers of the function");
  std::erase_if(formed.forms, [&](Form& form) { return !Number(*formed.graph, first_added, form); });
  formed.members.assign(formed.graph->size(), {});
  for (size_t form = 0; form < formed.forms.size(); ++form) {
    const std::vector<FormRoot>& roots = formed.forms[form].roots;
    for (size_t root = 0; root < roots.size(); ++root)
      roots[root].added.ForEach([&](PostDfsIndex node) { formed.members[node] = {form, root}; });
  }
  return formed;
}

}  // namespace collage
