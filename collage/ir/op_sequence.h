#pragma once

#include <optional>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// A straight-line function as operator calls in evaluation order over numbered tensors: what code generators, graph
/// writers and the memory planner want to see. Composite and other function literals are inlined, lets are resolved, tuples
/// and projections vanish (tuple arguments and results are flattened).
struct OpSequence {
  struct Value {
    TensorType type;
    std::optional<Tensor> constant;  ///< set for constants
  };
  struct Step {
    const OpDef* op;
    Attributes attributes;
    std::vector<size_t> inputs;   ///< indices into `values`, tuples flattened
    std::vector<size_t> outputs;  ///< several for an operator that gives a tuple
    std::vector<Type> argument_types;
    Type result_type;
    Expr call;  ///< the call it came from
  };
  std::vector<Value> values;
  std::vector<size_t> parameters;  ///< tensors of the parameters in order, tuples flattened
  std::vector<size_t> results;     ///< tensors of the result in order, tuples flattened
  std::vector<Step> steps;
};

/// Errors on what is not straight-line: if, recursion, calls of variables or of functions of the module.
Result<OpSequence> ToOpSequence(const Function& function);

}  // namespace collage
