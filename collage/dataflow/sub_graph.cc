#include "collage/dataflow/sub_graph.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "collage/dataflow/contraction.h"
#include "collage/support/check.h"
#include "collage/support/hash.h"

namespace collage {

/// What follows from the inside set alone; a wrapped sub-graph shares it with the one inside.
struct SubGraph::Shape {
  IndexSet inside;
  std::vector<PostDfsIndex> lists;  // entry, exit, input and output, one behind the other
  std::array<size_t, 5> begin{};
  [[nodiscard]] std::span<const PostDfsIndex> List(size_t i) const { return {lists.data() + begin[i], begin[i + 1] - begin[i]}; }
  size_t depth = 0;
  size_t operator_count = 0;
  size_t highest_entry = 0;  // level of the highest node with any input outside, an inlined one included
  OpKind kind = OpKind::kElementwise;
};

struct SubGraph::Data {
  std::shared_ptr<const Shape> shape;
  std::vector<NestedSubGraph> nested;
  uint64_t hash;
};

namespace {

void SortDistinct(std::vector<PostDfsIndex>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

/// Where each member stands in the ascending list: a table where the members are dense, otherwise a binary search.
class Positions {
 public:
  explicit Positions(const std::vector<PostDfsIndex>& members) : members_(members) {
    const size_t span = members.back() - members.front() + 1;
    if (members.size() < 32 || span > 8 * members.size()) return;
    table_.assign(span, kNone);
    for (size_t k = 0; k < members.size(); ++k) table_[members[k] - members.front()] = static_cast<uint32_t>(k);
  }
  /// members.size() for what is no member.
  [[nodiscard]] size_t Of(PostDfsIndex node) const {
    if (node < members_.front() || node > members_.back()) return members_.size();
    if (!table_.empty()) {
      const uint32_t position = table_[node - members_.front()];
      return position == kNone ? members_.size() : position;
    }
    const auto at = std::lower_bound(members_.begin(), members_.end(), node);
    return *at == node ? static_cast<size_t>(at - members_.begin()) : members_.size();
  }

 private:
  static constexpr uint32_t kNone = static_cast<uint32_t>(-1);
  const std::vector<PostDfsIndex>& members_;
  std::vector<uint32_t> table_;
};

/// Longest entry-to-exit path; all three ascending, so inputs come first.
size_t LongestPath(const DataflowGraph& graph, const std::vector<PostDfsIndex>& members, const std::vector<PostDfsIndex>& entry,
                   const std::vector<PostDfsIndex>& exit) {
  const Positions positions(members);
  std::vector<size_t> length(members.size(), 0);
  size_t longest = 0;
  auto next_entry = entry.begin();
  auto next_exit = exit.begin();
  for (size_t k = 0; k < members.size(); ++k) {
    if (next_entry != entry.end() && *next_entry == members[k]) {
      length[k] = 1;
      ++next_entry;
    }
    for (const PostDfsIndex input : graph[members[k]].inputs) {
      const size_t position = positions.Of(input);
      if (position < k && length[position] > 0) length[k] = std::max(length[k], length[position] + 1);
    }
    if (next_exit != exit.end() && *next_exit == members[k]) {
      longest = std::max(longest, length[k]);
      ++next_exit;
    }
  }
  return longest;
}

/// Looks for a path that starts at `from`, avoids `inside` and ends in it. A path only leads to greater indices and higher
/// levels, so nothing beyond the largest inside index, or as high as the highest entry, can come back: for candidates, which
/// are compact, that leaves about as many nodes to visit as the sub-graph has.
bool PathReturns(const DataflowGraph& graph, const IndexSet& inside, std::span<const PostDfsIndex> from, size_t level_limit) {
  const PostDfsIndex last = inside.Last();
  std::vector<PostDfsIndex> stack(from.begin(), from.end());
  std::unordered_set<PostDfsIndex> seen(from.begin(), from.end());
  while (!stack.empty()) {
    const PostDfsIndex node = stack.back();
    stack.pop_back();
    if (node > last || graph[node].level >= level_limit) continue;
    for (const PostDfsIndex next : graph[node].outputs) {
      if (next > last) break;
      if (inside.Contains(next)) return true;
      if (seen.insert(next).second) stack.push_back(next);
    }
  }
  return false;
}

/// Whether each nested sub-graph can become a function that is called inside.
bool NestedAreCallable(const DataflowGraph& graph, const IndexSet& inside, const std::vector<NestedSubGraph>& nested) {
  IndexSet taken;
  std::vector<const IndexSet*> sets;
  for (const NestedSubGraph& one : nested) {
    const IndexSet& members = one.sub_graph.inside();
    if (!members.IsSubsetOf(inside) || taken.Intersects(members)) return false;
    if (!NestedAreCallable(graph, members, one.sub_graph.nested())) return false;
    taken |= members;
    sets.push_back(&members);
  }
  // One that is the whole inside is convex when the whole is, which is a condition of its own.
  if (nested.size() == 1) return taken == inside || nested.front().sub_graph.IsConvex(graph);
  return ContractionIsAcyclic(graph, sets);
}

}  // namespace

std::string_view Name(Violation violation) {
  constexpr std::array<std::string_view, 6> kNames = {"max_exits", "max_depth", "basic_block", "nested", "taps", "convex"};
  return kNames[static_cast<size_t>(violation)];
}

OpKind KindOf(const DataflowGraph& graph, PostDfsIndex node) {
  const Expr& expr = graph[node].expr;
  if (const OpDef* op = CalledOp(expr)) return op->kind;
  if (expr->As<Tuple>() || expr->As<TupleGetItem>()) return OpKind::kTuple;
  if (expr->As<Constant>() || expr->As<Var>()) return OpKind::kElementwise;
  return OpKind::kOpaque;
}

bool IsInlined(const DataflowGraph& graph, PostDfsIndex node) {
  const Expr& expr = graph[node].expr;
  if (const Constant* constant = expr->As<Constant>()) return constant->value.shape().empty();
  return expr->As<Function>() && node + 1 != graph.size();
}

SubGraph::SubGraph(const DataflowGraph& graph, IndexSet inside) : SubGraph(graph, std::move(inside), {}) {}

SubGraph::SubGraph(const DataflowGraph& graph, IndexSet inside, std::vector<NestedSubGraph> nested) {
  COLLAGE_CHECK(!inside.Empty() && inside.Last() < graph.size());
  auto shape = std::make_shared<Shape>();
  const std::vector<PostDfsIndex> members = inside.ToVector();
  std::array<std::vector<PostDfsIndex>, 4> lists;
  auto& [entry, exit, input, output] = lists;
  for (const PostDfsIndex member : members) {
    const DataflowGraph::Node& node = graph[member];
    const size_t inputs_before = input.size();
    const size_t outputs_before = output.size();
    for (const PostDfsIndex other : node.inputs) {
      if (inside.Contains(other)) continue;
      shape->highest_entry = std::max(shape->highest_entry, node.level);
      if (!IsInlined(graph, other)) input.push_back(other);
    }
    for (const PostDfsIndex other : node.outputs) {
      if (!inside.Contains(other)) output.push_back(other);
    }
    if (input.size() > inputs_before) entry.push_back(member);
    if (output.size() > outputs_before || node.external) exit.push_back(member);
    shape->kind = std::max(shape->kind, KindOf(graph, member));
    shape->operator_count += CalledOp(node.expr) ? 1 : 0;
  }
  SortDistinct(input);
  SortDistinct(output);
  shape->depth = LongestPath(graph, members, entry, exit);
  shape->lists.reserve(entry.size() + exit.size() + input.size() + output.size());
  for (size_t i = 0; i < lists.size(); ++i) {
    shape->lists.insert(shape->lists.end(), lists[i].begin(), lists[i].end());
    shape->begin[i + 1] = shape->lists.size();
  }
  shape->inside = std::move(inside);
  SetData(std::move(shape), std::move(nested));
}

void SubGraph::SetData(std::shared_ptr<const Shape> shape, std::vector<NestedSubGraph> nested) {
  uint64_t hash = shape->inside.Hash();
  for (const NestedSubGraph& one : nested) {
    hash = HashCombine(hash, one.attributes.Hash());
    hash = HashCombine(hash, one.sub_graph.Hash());
  }
  data_ = std::make_shared<const Data>(Data{std::move(shape), std::move(nested), hash});
}

const IndexSet& SubGraph::inside() const { return data_->shape->inside; }
std::span<const PostDfsIndex> SubGraph::entry() const { return data_->shape->List(0); }
std::span<const PostDfsIndex> SubGraph::exit() const { return data_->shape->List(1); }
std::span<const PostDfsIndex> SubGraph::input() const { return data_->shape->List(2); }
std::span<const PostDfsIndex> SubGraph::output() const { return data_->shape->List(3); }
size_t SubGraph::depth() const { return data_->shape->depth; }
OpKind SubGraph::kind() const { return data_->shape->kind; }
size_t SubGraph::operator_count() const { return data_->shape->operator_count; }
const std::vector<NestedSubGraph>& SubGraph::nested() const { return data_->nested; }

bool SubGraph::IsConvex(const DataflowGraph& graph) const { return !PathReturns(graph, inside(), output(), data_->shape->highest_entry); }

bool SubGraph::IsInOneBlock(const DataflowGraph& graph) const {
  // The function itself is in none of its blocks. A constant is not computed, so it goes with any; alone, with its own.
  if (inside().Last() + 1 == graph.size()) return false;
  size_t block = graph[inside().First()].block;
  bool same = true;
  bool known = false;
  inside().ForEach([&](PostDfsIndex node) {
    if (graph[node].expr->As<Constant>()) return;
    if (!known) block = graph[node].block;
    known = true;
    same = same && graph[node].block == block;
  });
  if (!same) return false;
  // What a block inside this one computes cannot be passed in. The body of a function literal is no input: it is copied.
  return std::all_of(entry().begin(), entry().end(), [&](PostDfsIndex node) {
    const DataflowGraph::Node& consumer = graph[node];
    return consumer.expr->As<Function>() || std::all_of(consumer.inputs.begin(), consumer.inputs.end(),
                                                        [&](PostDfsIndex input) { return graph.BlockEncloses(graph[input].block, block); });
  });
}

bool SubGraph::HasTaps(const DataflowGraph& graph) const {
  return std::any_of(exit().begin(), exit().end(), [&](PostDfsIndex node) {
    const std::vector<PostDfsIndex>& outputs = graph[node].outputs;
    return std::any_of(outputs.begin(), outputs.end(), [&](PostDfsIndex output) { return inside().Contains(output); });
  });
}

std::vector<Violation> SubGraph::Violations(const DataflowGraph& graph, const SubGraphConfig& config) const {
  std::vector<Violation> violations;
  if (config.max_exits != 0 && exit().size() > config.max_exits) violations.push_back(Violation::kMaxExits);
  if (config.max_depth != 0 && depth() > config.max_depth) violations.push_back(Violation::kMaxDepth);
  if (!IsInOneBlock(graph)) violations.push_back(Violation::kBasicBlock);
  if (!NestedAreCallable(graph, inside(), nested())) violations.push_back(Violation::kNested);
  if (!config.allow_taps && HasTaps(graph)) violations.push_back(Violation::kTaps);
  if (!IsConvex(graph)) violations.push_back(Violation::kConvex);
  return violations;
}

bool SubGraph::Touches(const SubGraph& other) const {
  if (inside().Intersects(other.inside())) return false;
  const auto feeds = [](const SubGraph& from, const SubGraph& into) {
    return std::any_of(into.input().begin(), into.input().end(), [&](PostDfsIndex node) { return from.inside().Contains(node); });
  };
  return feeds(*this, other) || feeds(other, *this);
}

SubGraph SubGraph::DisjointUnion(const DataflowGraph& graph, const SubGraph& other) const {
  COLLAGE_CHECK(!inside().Intersects(other.inside()));
  // In one order, whichever way round the two were joined, so that equal unions compare equal.
  std::vector<NestedSubGraph> all = nested();
  all.insert(all.end(), other.nested().begin(), other.nested().end());
  std::sort(all.begin(), all.end(),
            [](const NestedSubGraph& a, const NestedSubGraph& b) { return a.sub_graph.inside().First() < b.sub_graph.inside().First(); });
  return {graph, inside() | other.inside(), std::move(all)};
}

SubGraph SubGraph::WithAttributes(const DataflowGraph&, Attributes attributes) const { return Wrapped(std::move(attributes)); }

SubGraph SubGraph::Wrapped(SharedAttributes attributes) const {
  SubGraph wrapped;
  wrapped.SetData(data_->shape, {NestedSubGraph{*this, std::move(attributes)}});
  return wrapped;
}

SubGraph SubGraph::Substitute(const DataflowGraph& to, const std::unordered_map<PostDfsIndex, PostDfsIndex>& image) const {
  IndexSet mapped;
  inside().ForEach([&](PostDfsIndex node) { mapped.Add(image.at(node)); });
  std::vector<NestedSubGraph> inner;
  for (const NestedSubGraph& one : nested()) inner.push_back({one.sub_graph.Substitute(to, image), one.attributes});
  return {to, std::move(mapped), std::move(inner)};
}

bool operator==(const SubGraph& a, const SubGraph& b) {
  return a.data_ == b.data_ || (a.data_->hash == b.data_->hash && a.inside() == b.inside() && a.nested() == b.nested());
}

uint64_t SubGraph::Hash() const { return data_->hash; }

}  // namespace collage
