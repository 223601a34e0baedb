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

}  // namespace

Status CheckPattern(const Pattern& pattern) {
  std::unordered_set<const PatternNode*> seen;
  std::vector<const Pattern*> stack = {&pattern};
  while (!stack.empty()) {
    const PatternNode& node = stack.back()->node();
    stack.pop_back();
    if (!seen.insert(&node).second) continue;
    COLLAGE_TRY_STATUS(CheckNode(node));
    for (const Pattern& child : node.children) stack.push_back(&child);
  }
  return {};
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
