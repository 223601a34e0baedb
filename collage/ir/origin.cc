#include "collage/ir/origin.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "collage/support/short_list.h"

namespace collage {

/// A part, or a union of others.
struct Origin::Node {
  OriginPart part;
  std::vector<std::shared_ptr<const Node>> joined;  // empty: a part

  Node(OriginPart one, std::vector<std::shared_ptr<const Node>> others) : part(std::move(one)), joined(std::move(others)) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  // NOLINTNEXTLINE(bugprone-exception-escape): out of memory here ends the process, as it does elsewhere
  ~Node();
};

// Unions of unions are as deep as a program is long: the first destructor of a thread drains what those that it triggers hand over.
// NOLINTNEXTLINE(bugprone-exception-escape)
Origin::Node::~Node() {
  thread_local std::vector<std::shared_ptr<const Node>>* queue = nullptr;
  if (joined.empty()) return;
  if (queue) {
    queue->insert(queue->end(), std::make_move_iterator(joined.begin()), std::make_move_iterator(joined.end()));
    return;
  }
  std::vector<std::shared_ptr<const Node>> pending = std::move(joined);
  queue = &pending;
  while (!pending.empty()) {
    std::shared_ptr<const Node> next = std::move(pending.back());
    pending.pop_back();
    next.reset();
  }
  queue = nullptr;
}

Origin::Origin(OriginPart part) : node_(std::make_shared<const Node>(std::move(part), std::vector<std::shared_ptr<const Node>>())) {}

Origin Origin::Union(const std::vector<Origin>& origins) {
  std::vector<std::shared_ptr<const Node>> joined;
  std::unordered_set<const Node*> seen;
  for (const Origin& origin : origins) {
    if (origin.node_ && seen.insert(origin.node_.get()).second) joined.push_back(origin.node_);
  }
  if (joined.empty()) return {};
  if (joined.size() == 1) return Origin(std::move(joined[0]));
  return Origin(std::make_shared<const Node>(OriginPart{}, std::move(joined)));
}

std::vector<const OriginPart*> Origin::Parts() const {
  std::vector<const OriginPart*> parts;
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> stack;
  const auto visit = [&](const std::shared_ptr<const Node>& node) {
    if (node && seen.insert(node.get()).second) stack.push_back(node.get());
  };
  visit(node_);
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (node->joined.empty()) parts.push_back(&node->part);
    for (const auto& other : node->joined) visit(other);
  }
  std::sort(parts.begin(), parts.end(), [](const OriginPart* a, const OriginPart* b) {
    return a->position != b->position ? a->position < b->position : a->text < b->text;
  });
  return parts;
}

std::vector<std::string> Origin::OnnxNodes() const {
  std::vector<std::string> names;
  for (const OriginPart* part : Parts()) {
    if (part->kind == OriginPart::Kind::kOnnxNode) names.push_back(part->text);
  }
  return names;
}

std::string Origin::ToString() const {
  std::vector<std::string> texts;
  for (const OriginPart* part : Parts()) texts.push_back(part->text);
  return ShortList(texts);
}

}  // namespace collage
