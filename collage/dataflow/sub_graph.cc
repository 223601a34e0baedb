#include "collage/dataflow/sub_graph.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <unordered_set>

#include "collage/dataflow/contraction.h"
#include "collage/support/block_allocator.h"
#include "collage/support/check.h"
#include "collage/support/hash.h"

namespace collage {

/// What follows from the inside set alone; a wrapped sub-graph shares it with the one inside. Entry, exit, input and output lie behind
/// it in the same piece of memory.
struct SubGraph::Shape {
  mutable std::atomic<uint32_t> owners = 1;
  OpKind kind = OpKind::kElementwise;
  uint32_t depth = 0;
  uint32_t operator_count = 0;
  uint32_t highest_entry = 0;  // level of the highest node with any input outside, an inlined one included
  std::array<uint32_t, 5> begin{};
  IndexSet inside;

  static Shape* Make(const std::array<std::vector<uint32_t>, 4>& lists) {
    size_t count = 0;
    for (const std::vector<uint32_t>& list : lists) count += list.size();
    auto* shape = new (AllocateInBlock(Bytes(count))) Shape;
    auto* at = reinterpret_cast<uint32_t*>(shape + 1);
    for (size_t i = 0; i < lists.size(); ++i) {
      at = std::uninitialized_copy(lists[i].begin(), lists[i].end(), at);
      shape->begin[i + 1] = shape->begin[i] + static_cast<uint32_t>(lists[i].size());
    }
    return shape;
  }
  [[nodiscard]] NodeList List(size_t i) const { return {reinterpret_cast<const uint32_t*>(this + 1) + begin[i], begin[i + 1] - begin[i]}; }
  static void Release(const Shape* shape) {
    if (shape->owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const size_t bytes = Bytes(shape->begin.back());
    shape->~Shape();
    FreeInBlock(shape, bytes);
  }
  static size_t Bytes(size_t nodes) { return sizeof(Shape) + nodes * sizeof(uint32_t); }
};

/// A few words, the nested sub-graphs behind them in the same piece of memory: thousands of candidates are kept at a time, and what
/// they hold together should fit the caches.
struct SubGraph::Data {
  mutable std::atomic<uint32_t> owners = 1;
  uint32_t nested_count = 0;
  uint64_t hash = 0;
  const Shape* shape;

  /// Takes the share in `shape` over.
  static const Data* Make(const Shape* shape, std::span<NestedSubGraph> nested) {
    static_assert(sizeof(Data) % alignof(NestedSubGraph) == 0);
    auto* data = new (AllocateInBlock(Bytes(nested.size()))) Data{.shape = shape};
    data->nested_count = static_cast<uint32_t>(nested.size());
    std::uninitialized_move(nested.begin(), nested.end(), reinterpret_cast<NestedSubGraph*>(data + 1));
    data->hash = shape->inside.Hash();
    for (const NestedSubGraph& one : data->Nested()) {
      data->hash = HashCombine(data->hash, one.attributes.Hash());
      data->hash = HashCombine(data->hash, one.sub_graph.Hash());
    }
    return data;
  }
  [[nodiscard]] std::span<const NestedSubGraph> Nested() const { return {reinterpret_cast<const NestedSubGraph*>(this + 1), nested_count}; }
  static size_t Bytes(size_t nested) { return sizeof(Data) + nested * sizeof(NestedSubGraph); }
};

SubGraph::SubGraph(const SubGraph& other) : data_(other.data_) {
  if (data_) data_->owners.fetch_add(1, std::memory_order_relaxed);
}

void SubGraph::Release() {
  if (data_->owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  std::destroy(data_->Nested().begin(), data_->Nested().end());
  Shape::Release(data_->shape);
  const size_t bytes = Data::Bytes(data_->nested_count);
  data_->~Data();
  FreeInBlock(data_, bytes);
}

namespace {

void SortDistinct(std::vector<uint32_t>& list) {
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
uint32_t LongestPath(const DataflowGraph& graph, const std::vector<PostDfsIndex>& members, const std::vector<uint32_t>& entry,
                     const std::vector<uint32_t>& exit, std::vector<uint32_t>& length) {
  const Positions positions(members);
  length.assign(members.size(), 0);
  uint32_t longest = 0;
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
bool PathReturns(const DataflowGraph& graph, const IndexSet& inside, NodeList from, size_t level_limit) {
  const PostDfsIndex last = inside.Last();
  const auto leads_back = [&](PostDfsIndex node) { return node <= last && graph[node].level < level_limit; };
  std::vector<PostDfsIndex> stack;
  std::copy_if(from.begin(), from.end(), std::back_inserter(stack), leads_back);
  if (stack.empty()) return false;
  std::unordered_set<PostDfsIndex> seen(stack.begin(), stack.end());
  while (!stack.empty()) {
    const PostDfsIndex node = stack.back();
    stack.pop_back();
    for (const PostDfsIndex next : graph[node].outputs) {
      if (next > last) break;
      if (inside.Contains(next)) return true;
      if (leads_back(next) && seen.insert(next).second) stack.push_back(next);
    }
  }
  return false;
}

/// What is written while one sub-graph is made, kept between them: a search makes hundreds of thousands.
struct Scratch {
  std::vector<PostDfsIndex> members;
  std::array<std::vector<uint32_t>, 4> lists;
  std::vector<uint32_t> length;
};

/// Whether each nested sub-graph can become a function that is called inside.
bool NestedAreCallable(const DataflowGraph& graph, const IndexSet& inside, std::span<const NestedSubGraph> nested) {
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

OpKind KindOf(const DataflowGraph& graph, PostDfsIndex node) { return graph[node].kind; }

SubGraph::SubGraph(const DataflowGraph& graph, IndexSet inside) : SubGraph(graph, std::move(inside), {}) {}

SubGraph::SubGraph(const DataflowGraph& graph, IndexSet inside, std::vector<NestedSubGraph> nested) {
  COLLAGE_CHECK(!inside.Empty() && inside.Last() < graph.size() && graph.size() <= std::numeric_limits<uint32_t>::max());
  static thread_local Scratch scratch;
  scratch.members.clear();
  inside.ForEach([](PostDfsIndex member) { scratch.members.push_back(member); });
  for (std::vector<uint32_t>& list : scratch.lists) list.clear();
  auto& [entry, exit, input, output] = scratch.lists;
  uint32_t highest_entry = 0;
  uint32_t operator_count = 0;
  OpKind kind = OpKind::kElementwise;
  for (const PostDfsIndex member : scratch.members) {
    const DataflowGraph::Node& node = graph[member];
    const size_t inputs_before = input.size();
    const size_t outputs_before = output.size();
    // The body of a function literal goes where the literal goes.
    const bool is_literal = node.Is<Function>() && member + 1 != graph.size();
    for (const PostDfsIndex other : node.inputs) {
      if (inside.Contains(other)) continue;
      highest_entry = std::max(highest_entry, static_cast<uint32_t>(node.level));
      if (!graph[other].inlined && !is_literal) input.push_back(static_cast<uint32_t>(other));
    }
    for (const PostDfsIndex other : node.outputs) {
      if (!inside.Contains(other)) output.push_back(static_cast<uint32_t>(other));
    }
    if (input.size() > inputs_before) entry.push_back(static_cast<uint32_t>(member));
    if (output.size() > outputs_before || node.external) exit.push_back(static_cast<uint32_t>(member));
    kind = std::max(kind, node.kind);
    operator_count += node.op ? 1 : 0;
  }
  SortDistinct(input);
  SortDistinct(output);
  Shape* shape = Shape::Make(scratch.lists);
  shape->kind = kind;
  shape->depth = LongestPath(graph, scratch.members, entry, exit, scratch.length);
  shape->operator_count = operator_count;
  shape->highest_entry = highest_entry;
  shape->inside = std::move(inside);
  data_ = Data::Make(shape, nested);
}

const IndexSet& SubGraph::inside() const { return data_->shape->inside; }
NodeList SubGraph::entry() const { return data_->shape->List(0); }
NodeList SubGraph::exit() const { return data_->shape->List(1); }
NodeList SubGraph::input() const { return data_->shape->List(2); }
NodeList SubGraph::output() const { return data_->shape->List(3); }
size_t SubGraph::depth() const { return data_->shape->depth; }
OpKind SubGraph::kind() const { return data_->shape->kind; }
size_t SubGraph::operator_count() const { return data_->shape->operator_count; }
std::span<const NestedSubGraph> SubGraph::nested() const { return data_->Nested(); }

bool SubGraph::IsConvex(const DataflowGraph& graph) const { return !PathReturns(graph, inside(), output(), data_->shape->highest_entry); }

bool SubGraph::IsInOneBlock(const DataflowGraph& graph) const {
  // The function itself is in none of its blocks. A constant is not computed, so it goes with any; alone, with its own.
  if (inside().Last() + 1 == graph.size()) return false;
  if (graph.BlockCount() == 1) return true;
  size_t block = graph[inside().First()].block;
  bool same = true;
  bool known = false;
  inside().ForEach([&](PostDfsIndex node) {
    if (graph[node].Is<Constant>()) return;
    if (!known) block = graph[node].block;
    known = true;
    same = same && graph[node].block == block;
  });
  if (!same) return false;
  // What a block inside this one computes cannot be passed in. The body of a function literal is no input: it is copied.
  return std::all_of(entry().begin(), entry().end(), [&](PostDfsIndex node) {
    const DataflowGraph::Node& consumer = graph[node];
    return consumer.Is<Function>() || std::all_of(consumer.inputs.begin(), consumer.inputs.end(),
                                                  [&](PostDfsIndex input) { return graph.BlockEncloses(graph[input].block, block); });
  });
}

bool SubGraph::HasTaps(const DataflowGraph& graph) const {
  return std::any_of(exit().begin(), exit().end(), [&](PostDfsIndex node) {
    const NodeIndices& outputs = graph[node].outputs;
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
  std::vector<NestedSubGraph> all(nested().begin(), nested().end());
  all.insert(all.end(), other.nested().begin(), other.nested().end());
  std::sort(all.begin(), all.end(),
            [](const NestedSubGraph& a, const NestedSubGraph& b) { return a.sub_graph.inside().First() < b.sub_graph.inside().First(); });
  return {graph, inside() | other.inside(), std::move(all)};
}

SubGraph SubGraph::WithAttributes(const DataflowGraph&, Attributes attributes) const { return Wrapped(std::move(attributes)); }

SubGraph SubGraph::Wrapped(SharedAttributes attributes) const {
  data_->shape->owners.fetch_add(1, std::memory_order_relaxed);
  NestedSubGraph one{*this, std::move(attributes)};
  return SubGraph(Data::Make(data_->shape, {&one, 1}));
}

SubGraph SubGraph::Substitute(const DataflowGraph& to, const std::unordered_map<PostDfsIndex, PostDfsIndex>& image) const {
  IndexSet mapped;
  inside().ForEach([&](PostDfsIndex node) {
    if (const auto at = image.find(node); at != image.end()) mapped.Add(at->second);
  });
  std::vector<NestedSubGraph> inner;
  for (const NestedSubGraph& one : nested()) inner.push_back({one.sub_graph.Substitute(to, image), one.attributes});
  return {to, std::move(mapped), std::move(inner)};
}

bool operator==(const SubGraph& a, const SubGraph& b) {
  return a.data_ == b.data_ || (a.data_->hash == b.data_->hash && a.inside() == b.inside() && std::ranges::equal(a.nested(), b.nested()));
}

uint64_t SubGraph::Hash() const { return data_->hash; }

}  // namespace collage
