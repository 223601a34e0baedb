#include "collage/pattern/pattern.h"

#include "collage/pattern/pattern_node.h"

namespace collage {

Pattern Pattern::As(std::string name) const {
  PatternNode node = *node_;
  node.capture = std::move(name);
  return Pattern(std::make_shared<const PatternNode>(std::move(node)));
}

namespace pattern {
namespace {

using Kind = PatternNode::Kind;

Pattern Make(PatternNode node) { return Pattern(std::make_shared<const PatternNode>(std::move(node))); }

}  // namespace

Pattern Wildcard() { return Make({.kind = Kind::kWildcard}); }

Pattern IsConstant() { return Make({.kind = Kind::kConstant}); }

Pattern IsScalar(double value) { return Make({.kind = Kind::kScalar, .scalar = value}); }

Pattern IsVariable(std::string name) { return Make({.kind = Kind::kVariable, .name = std::move(name)}); }

Pattern IsOp(std::string name) { return Make({.kind = Kind::kOp, .name = std::move(name)}); }

Pattern CallOf(Pattern callee, std::vector<Pattern> args) {
  args.insert(args.begin(), std::move(callee));
  return Make({.kind = Kind::kCall, .children = std::move(args)});
}

Pattern CallOf(Pattern callee) { return Make({.kind = Kind::kCall, .children = {std::move(callee)}, .any = true}); }

Pattern CallOf(std::string op, std::vector<Pattern> args) { return CallOf(IsOp(std::move(op)), std::move(args)); }

Pattern CallOf(std::string op) { return CallOf(IsOp(std::move(op))); }

Pattern IsTuple(std::vector<Pattern> fields) { return Make({.kind = Kind::kTuple, .children = std::move(fields)}); }

Pattern AnyTuple() { return Make({.kind = Kind::kTuple, .any = true}); }

Pattern Projection(Pattern tuple, size_t index) {
  return Make({.kind = Kind::kProjection, .children = {std::move(tuple)}, .index = index});
}

Pattern Or(std::vector<Pattern> alternatives) { return Make({.kind = Kind::kOr, .children = std::move(alternatives)}); }

Pattern Optional(const Pattern& inner, const std::function<Pattern(Pattern)>& outer) { return Or({outer(inner), inner}); }

Pattern HasAttributes(Pattern of, Attributes attributes) {
  return Make({.kind = Kind::kAttributes, .children = {std::move(of)}, .attributes = std::move(attributes)});
}

Pattern HasType(Pattern of, Type type) { return Make({.kind = Kind::kType, .children = {std::move(of)}, .type = std::move(type)}); }

Pattern HasDType(Pattern of, DType dtype) { return Make({.kind = Kind::kDType, .children = {std::move(of)}, .dtype = dtype}); }

Pattern HasShape(Pattern of, Shape shape) { return Make({.kind = Kind::kShape, .children = {std::move(of)}, .shape = std::move(shape)}); }

Pattern Same(std::string name) { return Wildcard().As(std::move(name)); }

Pattern IsIf(Pattern condition, Pattern then_branch, Pattern else_branch) {
  return Make({.kind = Kind::kIf, .children = {std::move(condition), std::move(then_branch), std::move(else_branch)}});
}

Pattern IsLet(Pattern variable, Pattern value, Pattern body) {
  return Make({.kind = Kind::kLet, .children = {std::move(variable), std::move(value), std::move(body)}});
}

Pattern IsFunction(std::vector<Pattern> parameters, Pattern body) {
  parameters.insert(parameters.begin(), std::move(body));
  return Make({.kind = Kind::kFunction, .children = std::move(parameters)});
}

Pattern IsFunction(Pattern body) { return Make({.kind = Kind::kFunction, .children = {std::move(body)}, .any = true}); }

Pattern Dominator(Pattern parent, Pattern path, Pattern child) {
  return Make({.kind = Kind::kDominator, .children = {std::move(parent), std::move(path), std::move(child)}});
}

}  // namespace pattern
}  // namespace collage
