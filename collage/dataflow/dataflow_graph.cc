#include "collage/dataflow/dataflow_graph.h"

#include <algorithm>
#include <cstddef>

#include "collage/support/check.h"

namespace collage {
namespace {

/// Operators, which are no nodes, may be among them: to see which is to look at each.
void AppendNodeChildren(const Expr& expr, std::vector<const Expr*>& children) {
  const auto add_all = [&](const std::vector<Expr>& list) {
    for (const Expr& child : list) children.push_back(&child);
  };
  if (const Call* call = expr->As<Call>()) {
    if (!call->callee->As<Op>()) children.push_back(&call->callee);
    add_all(call->args);
  } else if (const Tuple* tuple = expr->As<Tuple>()) {
    add_all(tuple->fields);
  } else if (const TupleGetItem* item = expr->As<TupleGetItem>()) {
    children.push_back(&item->tuple);
  } else if (const Let* let = expr->As<Let>()) {
    children.insert(children.end(), {&let->value, &let->variable, &let->body});
  } else if (const If* branch = expr->As<If>()) {
    children.insert(children.end(), {&branch->condition, &branch->then_branch, &branch->else_branch});
  } else if (const Function* function = expr->As<Function>(); function && !IsAtomicFunction(expr)) {
    add_all(function->parameters);
    children.push_back(&function->body);
  }
}

DataflowGraph::Node Describe(const Expr& expr) {
  DataflowGraph::Node node;
  node.expr = expr;
  node.form = static_cast<uint8_t>(expr->value().index());
  node.op = CalledOp(expr);
  if (const Call* call = expr->As<Call>()) node.argument_count = static_cast<uint32_t>(call->args.size());
  if (node.op) {
    node.kind = node.op->kind;
  } else if (node.Is<Tuple>() || node.Is<TupleGetItem>()) {
    node.kind = OpKind::kTuple;
  } else if (node.Is<Constant>() || node.Is<Var>()) {
    node.kind = OpKind::kElementwise;
  }
  node.inlined = node.Is<Constant>() ? expr->type().AsTensor()->shape.empty() : node.Is<Function>();
  return node;
}

constexpr auto kNoChild = static_cast<uint32_t>(-1);

/// Edges as they are found, each once.
class InputLists {
 public:
  explicit InputLists(size_t nodes) : last_user_(nodes, 0), output_count_(nodes, 0) { begin_.reserve(nodes + 1); }

  /// Ends the list before, and begins that of the next node.
  void Begin() { begin_.push_back(static_cast<uint32_t>(inputs_.size())); }
  void Add(size_t input) {
    const auto user = static_cast<uint32_t>(begin_.size());
    if (last_user_[input] == user) return;
    last_user_[input] = user;
    inputs_.push_back(static_cast<uint32_t>(input));
    ++output_count_[input];
  }

  /// Inputs and outputs of each node, next to each other; `point(node, inputs, outputs)` is told where.
  template <class Point>
  std::shared_ptr<const uint32_t[]> Finish(Point&& point) {
    Begin();
    const size_t nodes = output_count_.size();
    std::shared_ptr<uint32_t[]> edges(new uint32_t[2 * (nodes + inputs_.size())]);
    uint32_t* at = edges.get();
    for (size_t i = 0; i < nodes; ++i) {
      uint32_t* inputs = at;
      *inputs = begin_[i + 1] - begin_[i];
      uint32_t* outputs = std::copy(inputs_.begin() + begin_[i], inputs_.begin() + begin_[i + 1], inputs + 1);
      at = outputs + 1 + output_count_[i];
      *outputs = 0;
      point(i, inputs, outputs);
      output_count_[i] = static_cast<uint32_t>(outputs - edges.get());
    }
    for (size_t i = 0; i < nodes; ++i) {
      for (uint32_t k = begin_[i]; k < begin_[i + 1]; ++k) {
        uint32_t* outputs = edges.get() + output_count_[inputs_[k]];
        outputs[++*outputs] = static_cast<uint32_t>(i);
      }
    }
    return edges;
  }

 private:
  std::vector<uint32_t> begin_;
  std::vector<uint32_t> inputs_;
  std::vector<uint32_t> last_user_;     // counted from one
  std::vector<uint32_t> output_count_;  // then where they stand
};

}  // namespace

bool IsAtomicFunction(const Expr& expr) {
  const Function* function = expr->As<Function>();
  return function && (function->attributes.Has("Primitive") || function->attributes.Has("Composite"));
}

std::vector<const Expr*> NodeChildren(const Expr& expr) {
  std::vector<const Expr*> children;
  AppendNodeChildren(expr, children);
  std::erase_if(children, [](const Expr* child) { return (*child)->As<Op>() != nullptr; });
  return children;
}

DataflowGraph::DataflowGraph(const Expr& function, const std::vector<Place>& places) {
  COLLAGE_CHECK(function->As<Function>() != nullptr);
  const ChildLists children = IndexExpressions(function);
  ConnectNodes(children);
  AssignBlocks(places);
  FindDominators();
}

PostDfsIndex DataflowGraph::Find(const Expr& expr) const {
  const uint32_t index = index_.Find(expr.get());
  return index == ExprTable::kNone ? kNone : index;
}

const std::vector<uint32_t>& DataflowGraph::CallsOf(const std::string& op_name) const {
  static const std::vector<uint32_t> kNobody;
  const auto calls = calls_.find(op_name);
  return calls == calls_.end() ? kNobody : calls->second;
}

PostDfsIndex DataflowGraph::IndexOf(const Expr& expr) const {
  const PostDfsIndex index = Find(expr);
  COLLAGE_CHECK(index != kNone);
  return index;
}

DataflowGraph::ChildLists DataflowGraph::IndexExpressions(const Expr& function) {
  struct Item {
    uint32_t number;  // by discovery
    uint32_t first_child;
    uint32_t next_child;
  };
  std::vector<Node> found;
  std::vector<uint32_t> place;  // by discovery, of its list of children
  ChildLists children;          // lists by discovery, as long as it goes on
  std::vector<Item> stack;
  std::vector<const Expr*> waiting;  // children of what is on the stack
  const auto discover = [&](const Expr& expr) {
    // The outermost function is looked into even when it carries attributes.
    const auto first = static_cast<uint32_t>(waiting.size());
    if (found.empty()) {
      for (const Expr& parameter : expr->As<Function>()->parameters) waiting.push_back(&parameter);
      waiting.push_back(&expr->As<Function>()->body);
    } else {
      AppendNodeChildren(expr, waiting);
    }
    stack.push_back({static_cast<uint32_t>(found.size()), first, first});
    found.push_back(Describe(expr));
    place.push_back(static_cast<uint32_t>(children.nodes.size()));
    children.nodes.resize(children.nodes.size() + waiting.size() - first);
  };
  std::vector<uint32_t> order;  // the numbers by discovery, in post-order
  index_.Insert(function.get(), 0);
  discover(function);
  while (!stack.empty()) {
    Item& item = stack.back();
    if (item.next_child < waiting.size()) {
      const Expr& child = *waiting[item.next_child];
      if (child->As<Op>()) {
        children.nodes[place[item.number] + item.next_child++ - item.first_child] = kNoChild;
        continue;
      }
      const auto [number, is_new] = index_.Insert(child.get(), static_cast<uint32_t>(found.size()));
      children.nodes[place[item.number] + item.next_child - item.first_child] = number;
      ++item.next_child;
      if (is_new) discover(child);
      continue;
    }
    order.push_back(item.number);
    waiting.resize(item.first_child);
    stack.pop_back();
  }
  found.front().inlined = false;
  return Renumber(std::move(found), std::move(place), std::move(children), order);
}

DataflowGraph::ChildLists DataflowGraph::Renumber(std::vector<Node> found, std::vector<uint32_t> place, ChildLists children,
                                                  const std::vector<uint32_t>& order) {
  std::vector<uint32_t> index_of(order.size());
  for (size_t i = 0; i < order.size(); ++i) index_of[order[i]] = static_cast<uint32_t>(i);
  index_.Renumber(index_of);
  place.push_back(static_cast<uint32_t>(children.nodes.size()));
  ChildLists ordered;
  ordered.begin.reserve(order.size() + 1);
  ordered.nodes.reserve(children.nodes.size());
  nodes_.reserve(order.size());
  for (const uint32_t number : order) {
    nodes_.push_back(std::move(found[number]));
    ordered.begin.push_back(static_cast<uint32_t>(ordered.nodes.size()));
    for (uint32_t k = place[number]; k < place[number + 1]; ++k) {
      if (children.nodes[k] != kNoChild) ordered.nodes.push_back(index_of[children.nodes[k]]);
    }
  }
  ordered.begin.push_back(static_cast<uint32_t>(ordered.nodes.size()));
  return ordered;
}

void DataflowGraph::ConnectNodes(const ChildLists& children) {
  std::unordered_map<PostDfsIndex, std::vector<PostDfsIndex>> values_of;  // by the variable that they are bound to
  for (PostDfsIndex i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].Is<Let>()) continue;
    const Let* let = nodes_[i].expr->As<Let>();
    const PostDfsIndex value = IndexOf(let->value);
    const PostDfsIndex variable = IndexOf(let->variable);
    const bool recursive = variable < value;
    values_of[recursive ? i : variable].push_back(value);
  }
  InputLists lists(nodes_.size());
  for (PostDfsIndex i = 0; i < nodes_.size(); ++i) {
    lists.Begin();
    if (!values_of.empty() && values_of.contains(i)) {
      for (const PostDfsIndex value : values_of.at(i)) lists.Add(value);
    }
    if (nodes_[i].Is<Let>()) {
      lists.Add(IndexOf(nodes_[i].expr->As<Let>()->variable));
      lists.Add(IndexOf(nodes_[i].expr->As<Let>()->body));
    } else if (nodes_[i].Is<Function>()) {
      const PostDfsIndex body = Find(nodes_[i].expr->As<Function>()->body);
      if (body != kNone && (i + 1 == nodes_.size() || !IsAtomicFunction(nodes_[i].expr))) lists.Add(body);
    } else {
      for (uint32_t k = children.begin[i]; k < children.begin[i + 1]; ++k) lists.Add(children.nodes[k]);
    }
  }
  edges_ = lists.Finish([&](PostDfsIndex i, const uint32_t* inputs, const uint32_t* outputs) {
    nodes_[i].inputs = NodeIndices(inputs);
    nodes_[i].outputs = NodeIndices(outputs);
  });
  for (Node& node : nodes_) {
    for (const PostDfsIndex input : node.inputs) node.level = std::max(node.level, nodes_[input].level + 1);
    node.external = node.outputs.empty();
  }
  nodes_[IndexOf(function()->As<Function>()->body)].external = true;
  std::unordered_map<const OpDef*, std::vector<uint32_t>*> calls_of;
  for (PostDfsIndex i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].op) continue;
    std::vector<uint32_t>*& calls = calls_of[nodes_[i].op];
    if (!calls) calls = &calls_[nodes_[i].op->name];
    calls->push_back(static_cast<uint32_t>(i));
  }
}

void DataflowGraph::AssignBlocks(const std::vector<Place>& places) {
  std::unordered_map<const ExprNode*, std::vector<const Place*>> placed_by;
  for (const Place& place : places) {
    if (index_.Find(place.expr) != ExprTable::kNone) placed_by[place.owner].push_back(&place);
  }
  constexpr auto kUnset = static_cast<uint32_t>(-1);
  for (Node& node : nodes_) node.block = kUnset;
  const auto use_node = [&](PostDfsIndex child, size_t from) {
    uint32_t& at = nodes_[child].block;
    if (at != from) at = static_cast<uint32_t>(at == kUnset ? from : blocks_.LowestCommonAncestor(at, from));
  };
  const auto use = [&](const Expr& child, size_t from) { use_node(IndexOf(child), from); };
  const auto place_in = [&](const Expr& owner, size_t part, size_t from) {
    const auto at = placed_by.find(owner.get());
    if (at == placed_by.end()) return;
    for (const Place* place : at->second) {
      if (place->part == part) use_node(index_.Find(place->expr), from);
    }
  };
  for (PostDfsIndex i = nodes_.size(); i-- > 0;) {
    const Node& node = nodes_[i];
    const Expr& expr = node.expr;
    const bool outermost = i + 1 == nodes_.size();
    if (node.block == kUnset) nodes_[i].block = 0;
    if (node.Is<If>()) {
      const If* branch = expr->As<If>();
      use(branch->condition, node.block);
      const size_t then_block = blocks_.Add(node.block);
      const size_t else_block = blocks_.Add(node.block);
      then_block_[i] = then_block;
      block_owners_.insert(block_owners_.end(), {{i, 0}, {i, 1}});
      use(branch->then_branch, then_block);
      use(branch->else_branch, else_block);
      place_in(expr, 0, then_block);
      place_in(expr, 1, else_block);
    } else if (node.Is<Function>()) {
      const Function* function = expr->As<Function>();
      if (!outermost && IsAtomicFunction(expr)) continue;
      const size_t body = outermost ? 0 : blocks_.Add(node.block);
      block_owners_.push_back({i, 0});
      body_block_[i] = body;
      for (const Expr& parameter : function->parameters) use(parameter, body);
      use(function->body, body);
      place_in(expr, 0, body);
    } else if (node.Is<Let>()) {
      for (const Expr* child : NodeChildren(expr)) use(*child, node.block);
    } else if (!node.Is<Var>()) {
      for (const PostDfsIndex input : node.inputs) use_node(input, node.block);
    }
  }
}

void DataflowGraph::FindDominators() {
  AncestorTree tree(nodes_.size());  // node k of the tree is the graph's node size - k; its root stands above everything
  const size_t count = nodes_.size();
  for (PostDfsIndex i = count; i-- > 0;) {
    Node& node = nodes_[i];
    size_t parent = 0;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const size_t output = count - node.outputs[k];
      parent = k == 0 ? output : tree.LowestCommonAncestor(parent, output);
    }
    tree.Add(parent);
    node.dominator_parent = parent == 0 ? kNone : count - parent;
  }
}

}  // namespace collage
