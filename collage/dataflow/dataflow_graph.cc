#include "collage/dataflow/dataflow_graph.h"

#include <algorithm>

#include "collage/support/check.h"

namespace collage {
namespace {

void AppendDistinct(std::vector<PostDfsIndex>& list, PostDfsIndex index) {
  if (std::find(list.begin(), list.end(), index) == list.end()) list.push_back(index);
}

}  // namespace

bool IsAtomicFunction(const Expr& expr) {
  const Function* function = expr->As<Function>();
  return function && (function->attributes.Has("Primitive") || function->attributes.Has("Composite"));
}

std::vector<const Expr*> NodeChildren(const Expr& expr) {
  std::vector<const Expr*> children;
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
    children = {&let->value, &let->variable, &let->body};
  } else if (const If* branch = expr->As<If>()) {
    children = {&branch->condition, &branch->then_branch, &branch->else_branch};
  } else if (const Function* function = expr->As<Function>(); function && !IsAtomicFunction(expr)) {
    add_all(function->parameters);
    children.push_back(&function->body);
  }
  std::erase_if(children, [](const Expr* child) { return (*child)->As<Op>() != nullptr; });
  return children;
}

DataflowGraph::DataflowGraph(Expr function, const std::vector<Place>& places) {
  COLLAGE_CHECK(function->As<Function>() != nullptr);
  IndexExpressions(function);
  DescribeNodes();
  ConnectNodes();
  AssignBlocks(places);
  FindDominators();
}

PostDfsIndex DataflowGraph::Find(const Expr& expr) const {
  const auto at = index_.find(expr.get());
  return at == index_.end() ? kNone : at->second;
}

PostDfsIndex DataflowGraph::IndexOf(const Expr& expr) const {
  const PostDfsIndex index = Find(expr);
  COLLAGE_CHECK(index != kNone);
  return index;
}

void DataflowGraph::IndexExpressions(const Expr& function) {
  struct Item {
    const Expr* expr;
    std::vector<const Expr*> children;
    size_t next;
  };
  // The outermost function is looked into even when it carries attributes.
  std::vector<const Expr*> children;
  for (const Expr& parameter : function->As<Function>()->parameters) children.push_back(&parameter);
  children.push_back(&function->As<Function>()->body);
  std::vector<Item> stack;
  stack.push_back({&function, std::move(children), 0});
  while (!stack.empty()) {
    Item& item = stack.back();
    if (item.next < item.children.size()) {
      const Expr* child = item.children[item.next++];
      if (index_.try_emplace(child->get(), kNone).second) stack.push_back({child, NodeChildren(*child), 0});
      continue;
    }
    index_[item.expr->get()] = nodes_.size();
    nodes_.emplace_back();
    nodes_.back().expr = *item.expr;
    stack.pop_back();
  }
}

void DataflowGraph::DescribeNodes() {
  for (Node& node : nodes_) {
    const Expr& expr = node.expr;
    node.op = CalledOp(expr);
    const Constant* constant = expr->As<Constant>();
    if (node.op) {
      node.kind = node.op->kind;
    } else if (expr->As<Tuple>() || expr->As<TupleGetItem>()) {
      node.kind = OpKind::kTuple;
    } else if (constant || expr->As<Var>()) {
      node.kind = OpKind::kElementwise;
    }
    node.inlined = constant ? constant->value.shape().empty() : expr->As<Function>() && &node != &nodes_.back();
  }
}

void DataflowGraph::ConnectNodes() {
  for (PostDfsIndex i = 0; i < nodes_.size(); ++i) {
    const Expr& expr = nodes_[i].expr;
    if (const Let* let = expr->As<Let>()) {
      const PostDfsIndex value = IndexOf(let->value);
      const PostDfsIndex variable = IndexOf(let->variable);
      const bool recursive = variable < value;
      if (!recursive) AppendDistinct(nodes_[variable].inputs, value);
      if (recursive) AppendDistinct(nodes_[i].inputs, value);
      AppendDistinct(nodes_[i].inputs, variable);
      AppendDistinct(nodes_[i].inputs, IndexOf(let->body));
    } else if (const Function* function = expr->As<Function>()) {
      const PostDfsIndex body = Find(function->body);
      if (body != kNone && (i + 1 == nodes_.size() || !IsAtomicFunction(expr))) nodes_[i].inputs.push_back(body);
    } else {
      const std::vector<const Expr*> children = NodeChildren(expr);
      if (children.size() <= 16) {
        for (const Expr* child : children) AppendDistinct(nodes_[i].inputs, IndexOf(*child));
      } else {
        std::unordered_map<PostDfsIndex, bool> seen;
        for (const Expr* child : children) {
          if (const PostDfsIndex index = IndexOf(*child); seen.emplace(index, true).second) nodes_[i].inputs.push_back(index);
        }
      }
    }
  }
  for (PostDfsIndex i = 0; i < nodes_.size(); ++i) {
    for (const PostDfsIndex input : nodes_[i].inputs) nodes_[input].outputs.push_back(i);
  }
  for (PostDfsIndex i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    for (const PostDfsIndex input : node.inputs) node.level = std::max(node.level, nodes_[input].level + 1);
    node.external = node.outputs.empty();
  }
  nodes_[IndexOf(function()->As<Function>()->body)].external = true;
}

void DataflowGraph::AssignBlocks(const std::vector<Place>& places) {
  std::unordered_map<const ExprNode*, std::vector<const Place*>> placed_by;
  for (const Place& place : places) {
    if (index_.contains(place.expr)) placed_by[place.owner].push_back(&place);
  }
  constexpr size_t kUnset = static_cast<size_t>(-1);
  std::vector<size_t> block(nodes_.size(), kUnset);
  const auto use_node = [&](PostDfsIndex child, size_t from) {
    size_t& at = block[child];
    if (at != from) at = at == kUnset ? from : blocks_.LowestCommonAncestor(at, from);
  };
  const auto use = [&](const Expr& child, size_t from) { use_node(IndexOf(child), from); };
  const auto place_in = [&](const Expr& owner, size_t part, size_t from) {
    const auto at = placed_by.find(owner.get());
    if (at == placed_by.end()) return;
    for (const Place* place : at->second) {
      if (place->part == part) use_node(index_.at(place->expr), from);
    }
  };
  for (PostDfsIndex i = nodes_.size(); i-- > 0;) {
    const Expr& expr = nodes_[i].expr;
    const bool outermost = i + 1 == nodes_.size();
    if (block[i] == kUnset) block[i] = 0;
    nodes_[i].block = block[i];
    if (const If* branch = expr->As<If>()) {
      use(branch->condition, block[i]);
      const size_t then_block = blocks_.Add(block[i]);
      const size_t else_block = blocks_.Add(block[i]);
      use(branch->then_branch, then_block);
      use(branch->else_branch, else_block);
      place_in(expr, 0, then_block);
      place_in(expr, 1, else_block);
    } else if (const Function* function = expr->As<Function>()) {
      if (!outermost && IsAtomicFunction(expr)) continue;
      const size_t body = outermost ? 0 : blocks_.Add(block[i]);
      body_block_[i] = body;
      for (const Expr& parameter : function->parameters) use(parameter, body);
      use(function->body, body);
      place_in(expr, 0, body);
    } else if (expr->As<Let>()) {
      for (const Expr* child : NodeChildren(expr)) use(*child, block[i]);
    } else if (!expr->As<Var>()) {
      for (const PostDfsIndex input : nodes_[i].inputs) use_node(input, block[i]);
    }
  }
}

void DataflowGraph::FindDominators() {
  AncestorTree tree;  // node k of the tree is the graph's node size - k; its root stands above everything
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
