#include "collage/pattern/check.h"

#include <unordered_set>

#include "collage/op/table.h"
#include "collage/pattern/pattern_node.h"

namespace collage {
namespace {

using Kind = PatternNode::Kind;

Status CheckNode(const PatternNode& node) {
  if (node.kind == Kind::kOp && !Operators().Find(node.name)) return Fail("there is no operator '" + node.name + "'");
  if (node.kind == Kind::kOr && node.children.empty()) return Fail("an alternative of nothing matches nothing");
  return {};
}

/// Each once, the root first.
std::vector<const PatternNode*> NodesOf(const Pattern& pattern) {
  std::unordered_set<const PatternNode*> seen = {&pattern.node()};
  std::vector<const PatternNode*> nodes = {&pattern.node()};
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const Pattern& child : nodes[i]->children) {
      if (seen.insert(&child.node()).second) nodes.push_back(&child.node());
    }
  }
  return nodes;
}

}  // namespace

Status CheckPattern(const Pattern& pattern) {
  for (const PatternNode* node : NodesOf(pattern)) COLLAGE_TRY_STATUS(CheckNode(*node));
  return {};
}

std::set<std::string> CapturedNames(const Pattern& pattern) {
  std::set<std::string> names;
  for (const PatternNode* node : NodesOf(pattern)) {
    if (!node->capture.empty()) names.insert(node->capture);
  }
  return names;
}

Status CheckPatterns(const std::vector<PatternRule>& table) {
  for (const PatternRule& rule : table) {
    if (rule.label.empty()) return Fail("a rule of the pattern table has no label");
    const Status checked = CheckPattern(rule.pattern);
    if (!checked) return Fail("rule '" + rule.label + "': " + checked.error().message);
  }
  return {};
}

}  // namespace collage
