#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

struct PatternNode;

/// A pattern over expressions, as a value; cheap to copy. Built by the functions below.
class Pattern {
 public:
  explicit Pattern(std::shared_ptr<const PatternNode> node) : node_(std::move(node)) {}
  /// The same pattern; what it matches is captured under `name`.
  [[nodiscard]] Pattern As(std::string name) const;
  [[nodiscard]] const PatternNode& node() const { return *node_; }
  [[nodiscard]] const std::shared_ptr<const PatternNode>& shared() const { return node_; }

 private:
  std::shared_ptr<const PatternNode> node_;
};

namespace pattern {

/// Anything; what it matches stays outside of the match.
Pattern Wildcard();
/// A constant; inside the match.
Pattern IsConstant();
/// A constant of one element equal to `value`.
Pattern IsScalar(double value);
/// A variable, outside of the match as what it stands for is; any name when empty. Where a pattern of a let names the variable, the
/// let binds it inside.
Pattern IsVariable(std::string name = {});
/// A call of the named operator; commutative binary operators match either way round.
Pattern CallOf(std::string op, std::vector<Pattern> args);
/// A call of the named operator with any arguments.
Pattern CallOf(std::string op);
/// A call whose callee matches (operators, function literals).
Pattern CallOf(Pattern callee, std::vector<Pattern> args);
/// As above, with any arguments.
Pattern CallOf(Pattern callee);
Pattern IsOp(std::string name);
Pattern IsTuple(std::vector<Pattern> fields);
Pattern AnyTuple();
Pattern Projection(Pattern tuple, size_t index);
Pattern Or(std::vector<Pattern> alternatives);
/// `outer(inner)` or `inner` alone.
Pattern Optional(const Pattern& inner, const std::function<Pattern(Pattern)>& outer);
/// A call whose attributes include these; "kind" compares the operator's fusion kind.
Pattern HasAttributes(Pattern of, Attributes attributes);
Pattern HasType(Pattern of, Type type);
Pattern HasDType(Pattern of, DType dtype);
Pattern HasShape(Pattern of, Shape shape);
/// The expression that another part of the pattern captured under `name`; itself outside of the match.
Pattern Same(std::string name);
Pattern IsIf(Pattern condition, Pattern then_branch, Pattern else_branch);
Pattern IsLet(Pattern variable, Pattern value, Pattern body);
/// A function literal with these parameters, inside of the match as one node: parameters and body are part of it.
Pattern IsFunction(std::vector<Pattern> parameters, Pattern body);
/// A function literal with any parameters.
Pattern IsFunction(Pattern body);
/// Matches a `child` that dominates a `parent`: every path from the parent to the result of the program leads through the child,
/// and every expression between the two matches `path`. All three parts are inside. There may be nothing between them. Of the
/// operands of what lies between and of the child, those that are computed come from the parent; parameters and constants may join.
Pattern Dominator(Pattern parent, Pattern path, Pattern child);

}  // namespace pattern
}  // namespace collage
