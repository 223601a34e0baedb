#include "tests/candidate/oracle.h"

#include <algorithm>
#include <unordered_set>

namespace collage {
namespace {

using Mask = Oracle::Mask;

Mask Bit(size_t node) { return Mask{1} << node; }
size_t Lowest(Mask mask) { return static_cast<size_t>(__builtin_ctzll(mask)); }

template <class Visit>
void ForEach(Mask mask, Visit&& visit) {
  for (; mask != 0; mask &= mask - 1) visit(Lowest(mask));
}

std::vector<Expr> Read(const Expr& expr) {
  if (const Call* call = expr->As<Call>()) return call->args;
  if (const Tuple* tuple = expr->As<Tuple>()) return tuple->fields;
  if (const TupleGetItem* item = expr->As<TupleGetItem>()) return {item->tuple};
  if (const Function* function = expr->As<Function>()) return {function->body};
  return {};
}

}  // namespace

Oracle::Oracle(const DataflowGraph& graph)
    : graph_(graph), count_(graph.size()), inputs_(count_, 0), outputs_(count_, 0), reached_(count_, 0) {
  for (size_t node = 0; node < count_; ++node) {
    for (const Expr& input : Read(graph[node].expr)) {
      inputs_[node] |= Bit(graph.Find(input));
      outputs_[graph.Find(input)] |= Bit(node);
    }
  }
  for (size_t node = count_; node-- > 0;) {
    ForEach(outputs_[node], [&](size_t output) { reached_[node] |= Bit(output) | reached_[output]; });
  }
  results_ = Bit(graph.Find(graph.function()->As<Function>()->body));
}

Mask Oracle::Where(const std::function<bool(const Expr&)>& holds) const {
  Mask mask = 0;
  for (size_t node = 0; node < count_; ++node) mask |= holds(graph_[node].expr) ? Bit(node) : 0;
  return mask;
}

Mask Oracle::Calls() const {
  return Where([](const Expr& expr) { return CalledOp(expr) != nullptr; });
}

bool Oracle::IsConvex(Mask inside) const {
  Mask left = 0;
  ForEach(inside, [&](size_t node) { left |= outputs_[node] & ~inside; });
  Mask beyond = 0;
  ForEach(left, [&](size_t node) { beyond |= reached_[node]; });
  return (beyond & inside) == 0;
}

Mask Oracle::Exits(Mask inside) const {
  Mask exits = inside & results_;
  ForEach(inside, [&](size_t node) { exits |= (outputs_[node] & ~inside) ? Bit(node) : 0; });
  return exits;
}

size_t Oracle::Depth(Mask inside) const {
  std::vector<size_t> length(count_, 0);
  size_t longest = 0;
  const Mask exits = Exits(inside);
  ForEach(inside, [&](size_t node) {
    if (inputs_[node] & ~inside) length[node] = 1;
    ForEach(inputs_[node] & inside,
            [&](size_t input) { length[node] = std::max(length[node], length[input] == 0 ? 0 : length[input] + 1); });
    if (exits & Bit(node)) longest = std::max(longest, length[node]);
  });
  return longest;
}

bool Oracle::HasTaps(Mask inside) const {
  bool taps = false;
  ForEach(Exits(inside), [&](size_t node) { taps = taps || (outputs_[node] & inside) != 0; });
  return taps;
}

size_t Oracle::OperatorCount(Mask inside) const { return static_cast<size_t>(__builtin_popcountll(inside & Calls())); }

bool Oracle::IsValid(Mask inside, const SubGraphConfig& config) const {
  if (config.max_exits != 0 && static_cast<size_t>(__builtin_popcountll(Exits(inside))) > config.max_exits) return false;
  if (config.max_depth != 0 && Depth(inside) > config.max_depth) return false;
  return (config.allow_taps || !HasTaps(inside)) && IsConvex(inside);
}

bool Oracle::Feeds(Mask from, Mask into) const {
  Mask read = 0;
  ForEach(into, [&](size_t node) { read |= inputs_[node]; });
  return (read & from) != 0;
}

OpKind Oracle::KindOf(Mask inside) const {
  OpKind largest = OpKind::kElementwise;
  ForEach(inside, [&](size_t node) {
    const Expr& expr = graph_[node].expr;
    OpKind kind = OpKind::kOpaque;
    if (CalledOp(expr)) kind = CalledOp(expr)->kind;
    if (expr->As<Tuple>() || expr->As<TupleGetItem>()) kind = OpKind::kTuple;
    if (expr->As<Constant>() || expr->As<Var>()) kind = OpKind::kElementwise;
    largest = std::max(largest, kind);
  });
  return largest;
}

std::vector<Mask> Oracle::Closure(const std::vector<Mask>& seeds, const std::vector<Combiner>& combiners,
                                  const CombineLimits& limits) const {
  Mask universe = 0;
  for (const Mask seed : seeds) universe |= seed;
  for (const Combiner& combiner : combiners) {
    universe |= Where([&](const Expr& expr) {
      return (combiner.kind == Combiner::Kind::kTupleArgument && expr->As<Tuple>()) ||
             (combiner.kind == Combiner::Kind::kTupleProjection && expr->As<TupleGetItem>()) ||
             (combiner.kind == Combiner::Kind::kConstant && expr->As<Constant>());
    });
  }
  std::vector<Mask> found;
  std::unordered_set<Mask> known(seeds.begin(), seeds.end());
  const Known is_known = [&](Mask mask) { return known.contains(mask); };
  // Subsets in ascending order: all parts of a set come before it.
  for (Mask inside = universe & (~universe + 1); inside != 0; inside = (inside - universe) & universe) {
    if (!is_known(inside)) {
      if (!IsConvex(inside)) continue;
      if (limits.max_depth != 0 && Depth(inside) > limits.max_depth) continue;
      if (limits.max_operators != 0 && OperatorCount(inside) > limits.max_operators) continue;
      if (limits.max_exits != 0 && static_cast<size_t>(__builtin_popcountll(Exits(inside))) > limits.max_exits) continue;
      if (std::none_of(combiners.begin(), combiners.end(), [&](const Combiner& combiner) { return IsJoined(inside, combiner, is_known); }))
        continue;
      known.insert(inside);
    }
    found.push_back(inside);
  }
  return found;
}

bool Oracle::IsJoined(Mask inside, const Combiner& combiner, const Known& known) const {
  bool joined = false;
  if (combiner.kind == Combiner::Kind::kAny || combiner.kind == Combiner::Kind::kByKind) {
    for (Mask up = (inside - 1) & inside; up != 0 && !joined; up = (up - 1) & inside) {
      const Mask down = inside & ~up;
      if (!known(up) || !known(down) || !Feeds(up, down)) continue;
      joined = combiner.kind == Combiner::Kind::kAny || (KindOf(up) <= combiner.up && KindOf(down) <= combiner.down);
    }
    return joined;
  }
  ForEach(inside, [&](size_t node) {
    const Expr& expr = graph_[node].expr;
    const Mask rest = inside & ~Bit(node);
    if (combiner.kind == Combiner::Kind::kTupleArgument && expr->As<Tuple>()) joined = joined || JoinsTuple(inside, node, known);
    if (combiner.kind == Combiner::Kind::kTupleProjection && expr->As<TupleGetItem>())
      joined = joined || (Feeds(rest, Bit(node)) && known(rest));
    if (combiner.kind == Combiner::Kind::kConstant && expr->As<Constant>()) joined = joined || (Feeds(Bit(node), rest) && known(rest));
  });
  return joined;
}

bool Oracle::JoinsTuple(Mask inside, size_t tuple, const Known& known) const {
  std::vector<size_t> fields = Members(inputs_[tuple]);
  const Mask others = inside & ~Bit(tuple);
  for (Mask consumer = others; consumer != 0; consumer = (consumer - 1) & others) {
    if (!Feeds(Bit(tuple), consumer) || !known(consumer)) continue;
    std::vector<Mask> chosen;
    if (HasProducers(fields, 0, others & ~consumer, chosen, known)) return true;
  }
  return false;
}

bool Oracle::HasProducers(const std::vector<size_t>& fields, size_t field, Mask rest, std::vector<Mask>& chosen, const Known& known) const {
  if (field == fields.size()) {
    Mask all = 0;
    for (const Mask producer : chosen) all |= producer;
    return all == rest;
  }
  const auto gives = [&](Mask producer) { return (producer & Bit(fields[field])) != 0; };
  if (std::any_of(chosen.begin(), chosen.end(), gives)) return HasProducers(fields, field + 1, rest, chosen, known);
  Mask free = rest;
  for (const Mask producer : chosen) free &= ~producer;
  for (Mask producer = free; producer != 0; producer = (producer - 1) & free) {
    if (!gives(producer) || !known(producer)) continue;
    chosen.push_back(producer);
    if (HasProducers(fields, field + 1, rest, chosen, known)) return true;
    chosen.pop_back();
  }
  return false;
}

bool Oracle::IsAcyclicWhenContracted(const std::vector<Mask>& sets) const {
  std::vector<size_t> unit(count_);
  for (size_t node = 0; node < count_; ++node) unit[node] = node;
  for (const Mask set : sets) ForEach(set, [&](size_t node) { unit[node] = Lowest(set); });
  // Units whose inputs are all gone go, until nothing more does.
  std::vector<bool> gone(count_, false);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t one = 0; one < count_; ++one) {
      if (unit[one] != one || gone[one]) continue;
      bool waits = false;
      for (size_t node = 0; node < count_; ++node) {
        if (unit[node] == one) ForEach(inputs_[node], [&](size_t input) { waits = waits || (unit[input] != one && !gone[unit[input]]); });
      }
      if (waits) continue;
      gone[one] = changed = true;
    }
  }
  for (size_t node = 0; node < count_; ++node) {
    if (!gone[unit[node]]) return false;
  }
  return true;
}

std::vector<size_t> Oracle::Members(Mask inside) {
  std::vector<size_t> members;
  ForEach(inside, [&](size_t node) { members.push_back(node); });
  return members;
}

Oracle::Sets Oracle::ToSets(const std::vector<Mask>& masks) {
  Sets sets;
  for (const Mask mask : masks) sets.insert(Members(mask));
  return sets;
}

}  // namespace collage
