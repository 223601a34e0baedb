#pragma once

#include <random>
#include <vector>

#include "collage/ir/module.h"
#include "collage/pattern/rule.h"

namespace collage {

/// Seeded functions over small tensors with everything that a partitioner must respect: let, if, function literals that capture
/// variables, called once, twice or through a let, tuples, projections, split, concatenate, weights and scalars.
class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : random_(seed) {}

  IRModule Make();

 private:
  using Values = std::vector<Expr>;

  size_t Below(size_t count) { return random_() % count; }
  /// Recent values are preferred, so that chains form as well as bushes.
  Expr Pick(const Values& values);
  /// The result of a scope in which `values` are visible.
  Expr Block(Values values, size_t steps, size_t depth);
  Expr Condition(const Expr& value);
  Expr Literal(const Values& values, size_t depth);
  void AddOperator(Values& values);
  void AddTuple(Values& values);
  Expr Weight();

  std::mt19937_64 random_;
  size_t variables_ = 0;
};

}  // namespace collage
