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

const PatternMatcher::Partials& PatternMatcher::Match(const Pattern& pattern, const Expr& expr) {
  static const Partials kNone;
  static const Partials kAnything(1);
  if (IsCallOfAnother(pattern.node(), CalledOp(expr))) return kNone;
  if (pattern.node().kind == Kind::kWildcard && pattern.node().capture.empty()) return kAnything;
  const auto key = std::make_pair(&pattern.node(), expr.get());
  const auto at = memo_.find(key);
  if (at != memo_.end()) return at->second;
  Partials partials = Compute(pattern.node(), expr);
  if (!pattern.node().capture.empty()) {
    std::erase_if(partials, [&](Partial& partial) {
      const auto [capture, is_new] = partial.captures.emplace(pattern.node().capture, expr);
      return !is_new && capture->second != expr;
    });
  }
  return memo_[key] = std::move(partials);
}

PatternMatcher::Partials PatternMatcher::WithSelf(Partials partials, const Expr& expr) const {
  const PostDfsIndex self = graph_.Find(expr);
  if (self == DataflowGraph::kNone) return partials;
  for (Partial& partial : partials) partial.inside.Add(self);
  return partials;
}

PatternMatcher::Partials PatternMatcher::Compute(const PatternNode& node, const Expr& expr) {
  const Partials plain(1);
  switch (node.kind) {
    case Kind::kWildcard:
      return plain;
    case Kind::kConstant:
      return expr->As<Constant>() ? WithSelf(plain, expr) : Partials{};
    case Kind::kScalar:
      return IsScalarOf(expr, node.scalar) ? WithSelf(plain, expr) : Partials{};
    case Kind::kVariable: {
      const Var* variable = expr->As<Var>();
      return variable && (node.name.empty() || variable->name == node.name) ? WithSelf(plain, expr) : Partials{};
    }
    case Kind::kOp: {
      const Op* op = expr->As<Op>();
      return op && op->def->name == node.name ? plain : Partials{};
    }
    case Kind::kCall:
      return MatchCall(node, expr);
    case Kind::kOr: {
      Partials all;
      for (const Pattern& alternative : node.children) {
        for (const Partial& partial : Match(alternative, expr)) {
          if (std::find(all.begin(), all.end(), partial) == all.end()) all.push_back(partial);
        }
      }
      return all;
    }
    case Kind::kAttributes:
    case Kind::kType:
    case Kind::kDType:
    case Kind::kShape:
      return ConstraintHolds(node, expr) ? Match(node.children[0], expr) : Partials{};
    case Kind::kDominator:
      return MatchDominator(node, expr);
    default:
      return MatchBranches(node, expr);
  }
}

PatternMatcher::Partials PatternMatcher::MatchInOrder(const std::vector<std::pair<const Pattern*, const Expr*>>& pairs) {
  Partials partials(1);
  for (const auto& [pattern, expr] : pairs) {
    Partials extended;
    for (const Partial& right : Match(*pattern, *expr)) {
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
    if (partials.empty()) break;
  }
  return partials;
}

PatternMatcher::Partials PatternMatcher::MatchCall(const PatternNode& node, const Expr& expr) {
  const Call* call = expr->As<Call>();
  if (!call || (!node.any && node.children.size() != call->args.size() + 1)) return {};
  std::vector<std::pair<const Pattern*, const Expr*>> pairs = {{&node.children[0], &call->callee}};
  if (node.any) return WithSelf(MatchInOrder(pairs), expr);
  for (size_t i = 0; i < call->args.size(); ++i) pairs.emplace_back(&node.children[i + 1], &call->args[i]);
  Partials partials = MatchInOrder(pairs);
  const OpDef* op = CalledOp(expr);
  if (op && op->commutative && call->args.size() == 2) {
    std::swap(pairs[1].second, pairs[2].second);
    for (Partial& swapped : MatchInOrder(pairs)) {
      if (std::find(partials.begin(), partials.end(), swapped) == partials.end()) partials.push_back(std::move(swapped));
    }
  }
  return WithSelf(std::move(partials), expr);
}

PatternMatcher::Partials PatternMatcher::MatchDominator(const PatternNode& node, const Expr& child) {
  const PostDfsIndex self = graph_.Find(child);
  if (self == DataflowGraph::kNone || Match(node.children[2], child).empty()) return {};
  Partials all;
  // Up from the child as long as the path matches; each expression met may be a parent.
  std::vector<PostDfsIndex> stack = graph_[self].inputs;
  IndexSet seen(stack);
  while (!stack.empty()) {
    const PostDfsIndex at = stack.back();
    stack.pop_back();
    const Expr& expr = graph_[at].expr;
    if (!Match(node.children[0], expr).empty()) {
      Partials pairs = MatchInOrder({{&node.children[0], &expr}, {&node.children[2], &child}});
      for (Partial& partial : MatchBetween(node.children[1], at, self, std::move(pairs))) {
        if (std::find(all.begin(), all.end(), partial) == all.end()) all.push_back(std::move(partial));
      }
    }
    if (Match(node.children[1], expr).empty()) continue;
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
      for (const Partial& between : Match(path, graph_[at].expr)) {
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
  return partials;
}

PatternMatcher::Partials PatternMatcher::MatchBranches(const PatternNode& node, const Expr& expr) {
  std::vector<std::pair<const Pattern*, const Expr*>> pairs;
  const auto add = [&](size_t child, const Expr& part) { pairs.emplace_back(&node.children[child], &part); };
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
  return WithSelf(MatchInOrder(pairs), expr);
}

std::vector<PatternMatch> PatternMatcher::Matches(const Pattern& pattern, PostDfsIndex root) {
  if (alive_.empty() || alive_.back() != pattern.shared()) alive_.push_back(pattern.shared());
  std::vector<PatternMatch> matches;
  const Expr& expr = graph_[root].expr;
  for (const Partial& partial : Match(pattern, expr)) {
    matches.push_back({{expr, {partial.captures.begin(), partial.captures.end()}}, partial.inside});
  }
  return matches;
}

std::vector<PatternMatch> AllMatches(const DataflowGraph& graph, const Pattern& pattern) {
  std::vector<PatternMatch> all;
  ForEachMatch(graph, pattern, [&](PatternMatch match) { all.push_back(std::move(match)); });
  return all;
}

void ForEachMatch(const DataflowGraph& graph, const Pattern& pattern, const std::function<void(PatternMatch)>& visit) {
  PatternMatcher matcher(graph);
  for (PostDfsIndex root = 0; root < graph.size(); ++root) {
    if (IsCallOfAnother(pattern.node(), graph[root].op)) continue;
    for (PatternMatch& match : matcher.Matches(pattern, root)) {
      if (!match.inside.Empty()) visit(std::move(match));
    }
  }
}

}  // namespace collage
