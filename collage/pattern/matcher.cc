#include "collage/pattern/matcher.h"

#include <algorithm>

#include "collage/pattern/attribute_defaults.h"
#include "collage/pattern/pattern_node.h"

namespace collage {
namespace {

using Kind = PatternNode::Kind;

bool IsScalarOf(const Expr& expr, double value) {
  const Constant* constant = expr->As<Constant>();
  return constant && constant->value.ElementCount() == 1 && constant->value.ToDouble()[0] == value;
}

bool AttributesInclude(const Expr& expr, const Attributes& wanted) {
  if (!expr->As<Call>() && !expr->As<Function>()) return false;
  return std::all_of(wanted.entries().begin(), wanted.entries().end(),
                     [&](const Attributes::Entry& entry) { return SameValue(AttributeOrDefault(expr, entry.first), entry.second); });
}

/// Most expressions are calls of another operator: told apart before anything is looked up or kept.
bool IsCallOfAnother(const PatternNode& node, const OpDef* op) {
  if (node.kind != Kind::kCall || node.children[0].node().kind != Kind::kOp) return false;
  return !op || op->name != node.children[0].node().name;
}

bool ConstraintHolds(const PatternNode& node, const Expr& expr) {
  const TensorType* tensor = expr->type().AsTensor();
  switch (node.kind) {
    case Kind::kAttributes:
      return AttributesInclude(expr, node.attributes);
    case Kind::kType:
      return expr->type() == node.type;
    case Kind::kDType:
      return tensor && tensor->dtype == node.dtype;
    default:
      return tensor && tensor->shape == node.shape;
  }
}

}  // namespace

PatternMatcher::Subject PatternMatcher::Argument(const Subject& call, size_t position) const {
  if (call.index != DataflowGraph::kNone) {
    const DataflowGraph::Node& node = graph_[call.index];
    if (node.op && node.inputs.size() == node.argument_count) return SubjectAt(node.inputs[position]);
  }
  return SubjectOf((*call.expr)->As<Call>()->args[position]);
}

const OpDef* PatternMatcher::OpOf(const Subject& subject) const {
  return subject.index != DataflowGraph::kNone ? graph_[subject.index].op : CalledOp(*subject.expr);
}

const PatternMatcher::Partials& PatternMatcher::Match(const Pattern& pattern, const Subject& subject) {
  static const Partials kNone;
  static const Partials kAnything(1);
  if (IsCallOfAnother(pattern.node(), OpOf(subject))) return kNone;
  if (pattern.node().kind == Kind::kWildcard && pattern.node().capture.empty()) return kAnything;
  const auto key = std::make_pair(&pattern.node(), subject.expr->get());
  const auto at = memo_.find(key);
  if (at != memo_.end()) return at->second;
  Partials partials = MatchOnce(pattern.node(), subject);
  return memo_[key] = std::move(partials);
}

PatternMatcher::Partials PatternMatcher::MatchOnce(const PatternNode& node, const Subject& subject) {
  Partials partials = Compute(node, subject);
  if (!node.capture.empty()) {
    std::erase_if(partials, [&](Partial& partial) {
      const auto [capture, is_new] = partial.captures.emplace(node.capture, *subject.expr);
      return !is_new && capture->second != *subject.expr;
    });
  }
  return partials;
}

PatternMatcher::Partials PatternMatcher::WithSelf(Partials partials, const Subject& subject) {
  if (subject.index == DataflowGraph::kNone) return partials;
  for (Partial& partial : partials) partial.inside.Add(subject.index);
  return partials;
}

bool PatternMatcher::MatchLeaf(const PatternNode& node, const Subject& subject, Partials& partials) const {
  if (!node.capture.empty()) return false;
  switch (node.kind) {
    case Kind::kWildcard:
      return true;
    case Kind::kOp: {
      const Op* op = (*subject.expr)->As<Op>();
      if (!op || op->def->name != node.name) partials.clear();
      return true;
    }
    case Kind::kConstant: {
      const bool is_node = subject.index != DataflowGraph::kNone;
      const bool matches = is_node ? graph_[subject.index].Is<Constant>() : (*subject.expr)->As<Constant>() != nullptr;
      partials = matches ? WithSelf(std::move(partials), subject) : Partials{};
      return true;
    }
    default:
      return false;
  }
}

PatternMatcher::Partials PatternMatcher::Compute(const PatternNode& node, const Subject& subject) {
  const Expr& expr = *subject.expr;
  const auto itself = [&](bool matches) { return matches ? WithSelf(Partials(1), subject) : Partials(); };
  switch (node.kind) {
    case Kind::kWildcard:
      return Partials(1);
    case Kind::kConstant:
      return itself(expr->As<Constant>() != nullptr);
    case Kind::kScalar:
      return itself(IsScalarOf(expr, node.scalar));
    case Kind::kVariable: {
      const Var* variable = expr->As<Var>();
      return Partials(variable && (node.name.empty() || variable->name == node.name) ? 1 : 0);
    }
    case Kind::kOp: {
      const Op* op = expr->As<Op>();
      return Partials(op && op->def->name == node.name ? 1 : 0);
    }
    case Kind::kCall:
      return MatchCall(node, subject);
    case Kind::kOr: {
      Partials all;
      for (const Pattern& alternative : node.children) {
        for (const Partial& partial : Match(alternative, subject)) {
          if (std::find(all.begin(), all.end(), partial) == all.end()) all.push_back(partial);
        }
      }
      return all;
    }
    case Kind::kAttributes:
    case Kind::kType:
    case Kind::kDType:
    case Kind::kShape:
      return ConstraintHolds(node, expr) ? Match(node.children[0], subject) : Partials{};
    case Kind::kDominator:
      return MatchDominator(node, subject);
    default:
      return MatchBranches(node, subject);
  }
}

PatternMatcher::Partials PatternMatcher::MatchInOrder(const Pairs& pairs) {
  Partials partials(1);
  for (const auto& [pattern, subject] : pairs) {
    if (partials.empty()) break;
    if (MatchLeaf(pattern->node(), subject, partials)) continue;
    Partials extended;
    for (const Partial& right : Match(*pattern, subject)) {
      for (const Partial& left : partials) {
        Partial both{left.inside | right.inside, left.captures};
        const bool agree = std::all_of(right.captures.begin(), right.captures.end(), [&](const auto& capture) {
          const auto [at, is_new] = both.captures.insert(capture);
          return is_new || at->second == capture.second;
        });
        if (agree) extended.push_back(std::move(both));
      }
    }
    partials = std::move(extended);
  }
  return partials;
}

PatternMatcher::Partials PatternMatcher::MatchCall(const PatternNode& node, const Subject& subject) {
  const OpDef* op = OpOf(subject);
  const bool is_node = op && subject.index != DataflowGraph::kNone;
  // Of a node most is known without looking at the expression.
  const Call* call = is_node ? nullptr : (*subject.expr)->As<Call>();
  if (!is_node && !call) return {};
  const size_t arguments = is_node ? graph_[subject.index].argument_count : call->args.size();
  if (!node.any && node.children.size() != arguments + 1) return {};
  Pairs pairs;
  pairs.reserve(arguments + 1);
  const PatternNode& callee = node.children[0].node();
  if (!is_node || callee.kind != Kind::kOp || !callee.capture.empty()) {
    const Expr& called = (*subject.expr)->As<Call>()->callee;
    pairs.emplace_back(&node.children[0], op ? Subject{&called, DataflowGraph::kNone} : SubjectOf(called));
  } else if (op->name != callee.name) {
    return {};
  }
  if (node.any) return WithSelf(MatchInOrder(pairs), subject);
  const size_t first = pairs.size();
  for (size_t i = 0; i < arguments; ++i) pairs.emplace_back(&node.children[i + 1], Argument(subject, i));
  Partials partials = MatchInOrder(pairs);
  if (op && op->commutative && arguments == 2) {
    std::swap(pairs[first].second, pairs[first + 1].second);
    for (Partial& swapped : MatchInOrder(pairs)) {
      if (std::find(partials.begin(), partials.end(), swapped) == partials.end()) partials.push_back(std::move(swapped));
    }
  }
  return WithSelf(std::move(partials), subject);
}

PatternMatcher::Partials PatternMatcher::MatchDominator(const PatternNode& node, const Subject& child) {
  const PostDfsIndex self = child.index;
  if (self == DataflowGraph::kNone || Match(node.children[2], child).empty()) return {};
  Partials all;
  // Up from the child as long as the path matches; each expression met may be a parent.
  std::vector<PostDfsIndex> stack = graph_[self].inputs.ToVector();
  IndexSet seen(stack);
  while (!stack.empty()) {
    const PostDfsIndex at = stack.back();
    stack.pop_back();
    if (!Match(node.children[0], SubjectAt(at)).empty()) {
      Partials pairs = MatchInOrder({{&node.children[0], SubjectAt(at)}, {&node.children[2], child}});
      for (Partial& partial : MatchBetween(node.children[1], at, self, std::move(pairs))) {
        if (std::find(all.begin(), all.end(), partial) == all.end()) all.push_back(std::move(partial));
      }
    }
    if (Match(node.children[1], SubjectAt(at)).empty()) continue;
    for (const PostDfsIndex input : graph_[at].inputs) {
      if (seen.Contains(input)) continue;
      seen.Add(input);
      stack.push_back(input);
    }
  }
  return all;
}

PatternMatcher::Partials PatternMatcher::MatchBetween(const Pattern& path, PostDfsIndex parent, PostDfsIndex child, Partials partials) {
  // What the parent feeds, as far as the child: a path that ends elsewhere is one that the child does not dominate.
  std::vector<PostDfsIndex> stack = {parent};
  IndexSet seen({parent});
  while (!stack.empty() && !partials.empty()) {
    const PostDfsIndex at = stack.back();
    stack.pop_back();
    if (graph_[at].outputs.empty() || graph_[at].external) return {};
    if (at != parent) {
      // Names inside of the path stand for many expressions, so they are captured by none.
      Partials extended;
      for (const Partial& between : Match(path, SubjectAt(at))) {
        for (const Partial& partial : partials) extended.push_back({partial.inside | between.inside, partial.captures});
      }
      partials = std::move(extended);
    }
    for (const PostDfsIndex output : graph_[at].outputs) {
      if (output > child) return {};
      if (output == child || seen.Contains(output)) continue;
      seen.Add(output);
      stack.push_back(output);
    }
  }
  bool is_whole = OperandsComeFrom(child, seen);
  seen.ForEach([&](PostDfsIndex between) { is_whole = is_whole && (between == parent || OperandsComeFrom(between, seen)); });
  return is_whole ? partials : Partials{};
}

bool PatternMatcher::OperandsComeFrom(PostDfsIndex node, const IndexSet& sources) const {
  const NodeIndices& inputs = graph_[node].inputs;
  return std::all_of(inputs.begin(), inputs.end(), [&](PostDfsIndex input) {
    const DataflowGraph::Node& operand = graph_[input];
    const bool is_computed = operand.Is<Call>() || operand.Is<Tuple>() || operand.Is<TupleGetItem>() || operand.Is<If>() ||
                             operand.Is<Let>() || (operand.Is<Var>() && !operand.inputs.empty());
    return !is_computed || sources.Contains(input);
  });
}

PatternMatcher::Partials PatternMatcher::MatchBranches(const PatternNode& node, const Subject& subject) {
  const Expr& expr = *subject.expr;
  Pairs pairs;
  const auto add = [&](size_t child, const Expr& part) { pairs.emplace_back(&node.children[child], SubjectOf(part)); };
  const Tuple* tuple = expr->As<Tuple>();
  const TupleGetItem* item = expr->As<TupleGetItem>();
  const If* branch = expr->As<If>();
  const Let* let = expr->As<Let>();
  const Function* function = expr->As<Function>();
  if (node.kind == Kind::kTuple && tuple && (node.any || node.children.size() == tuple->fields.size())) {
    for (size_t i = 0; i < tuple->fields.size() && !node.any; ++i) add(i, tuple->fields[i]);
  } else if (node.kind == Kind::kProjection && item && item->index == node.index) {
    add(0, item->tuple);
  } else if (node.kind == Kind::kIf && branch) {
    add(0, branch->condition);
    add(1, branch->then_branch);
    add(2, branch->else_branch);
  } else if (node.kind == Kind::kLet && let) {
    add(0, let->variable);
    add(1, let->value);
    add(2, let->body);
  } else if (node.kind == Kind::kFunction && function && (node.any || node.children.size() == function->parameters.size() + 1)) {
    add(0, function->body);
    for (size_t i = 0; i < function->parameters.size() && !node.any; ++i) add(i + 1, function->parameters[i]);
  } else {
    return {};
  }
  Partials partials = MatchInOrder(pairs);
  // What is inside of a function literal belongs to it as the operator belongs to its call: written where it is used, in a block of its
  // own.
  for (Partial& partial : partials) {
    if (function) partial.inside = {};
    // A let that is inside binds its variable there.
    if (let && node.children[0].node().kind == Kind::kVariable) partial.inside.Add(graph_.IndexOf(let->variable));
  }
  return WithSelf(std::move(partials), subject);
}

PatternMatcher::Partials PatternMatcher::MatchRoot(const Pattern& pattern, PostDfsIndex root) {
  if (alive_.empty() || alive_.back() != pattern.shared()) alive_.push_back(pattern.shared());
  // Each root is asked about once, so what is found there need not be kept.
  return MatchOnce(pattern.node(), SubjectAt(root));
}

std::vector<PatternMatch> PatternMatcher::Matches(const Pattern& pattern, PostDfsIndex root) {
  std::vector<PatternMatch> matches;
  for (Partial& partial : MatchRoot(pattern, root)) {
    matches.push_back({{graph_[root].expr, {partial.captures.begin(), partial.captures.end()}}, std::move(partial.inside)});
  }
  return matches;
}

std::vector<IndexSet> PatternMatcher::MatchedSets(const Pattern& pattern, PostDfsIndex root) {
  std::vector<IndexSet> sets;
  for (Partial& partial : MatchRoot(pattern, root)) sets.push_back(std::move(partial.inside));
  return sets;
}

namespace {

/// Calls `visit` with each node that may be the root of a match.
template <class Visitor>
void ForEachRoot(const DataflowGraph& graph, const PatternNode& node, const Visitor& visit) {
  if (node.kind == Kind::kCall && node.children[0].node().kind == Kind::kOp) {
    for (const PostDfsIndex root : graph.CallsOf(node.children[0].node().name)) visit(root);
  } else {
    for (PostDfsIndex root = 0; root < graph.size(); ++root) visit(root);
  }
}

}  // namespace

void ForEachMatch(const DataflowGraph& graph, const Pattern& pattern, const std::function<void(PatternMatch)>& visit) {
  PatternMatcher matcher(graph);
  ForEachRoot(graph, pattern.node(), [&](PostDfsIndex root) {
    for (PatternMatch& match : matcher.Matches(pattern, root)) {
      if (!match.inside.Empty()) visit(std::move(match));
    }
  });
}

void ForEachMatchedSet(const DataflowGraph& graph, const Pattern& pattern, const std::function<void(IndexSet)>& visit) {
  PatternMatcher matcher(graph);
  ForEachRoot(graph, pattern.node(), [&](PostDfsIndex root) {
    for (IndexSet& inside : matcher.MatchedSets(pattern, root)) {
      if (!inside.Empty()) visit(std::move(inside));
    }
  });
}

}  // namespace collage
