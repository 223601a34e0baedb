#pragma once

#include <string>
#include <vector>

#include "collage/pattern/pattern.h"

namespace collage {

/// What a pattern is made of. One record for all kinds: the matcher is the only reader, and what a field means follows from
/// the builders in pattern.h.
struct PatternNode {
  enum class Kind {
    kWildcard,
    kConstant,
    kScalar,
    kVariable,
    kOp,
    kCall,
    kTuple,
    kProjection,
    kOr,
    kAttributes,
    kType,
    kDType,
    kShape,
    kIf,
    kLet,
    kFunction,
    kDominator
  };
  Kind kind = Kind::kWildcard;
  std::string capture;  ///< empty: not captured
  /// A call's callee, then its arguments; a function's body, then its parameters; alternatives, fields, the pattern that a
  /// constraint is about; a dominator's parent, path and child.
  std::vector<Pattern> children;
  bool any = false;  ///< arguments, fields or parameters may be anything
  std::string name;  ///< of an operator or a variable
  size_t index = 0;
  double scalar = 0;
  Attributes attributes;
  Type type;
  DType dtype = DType::kFloat32;
  Shape shape;
};

}  // namespace collage
