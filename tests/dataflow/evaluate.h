#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// Results of a function by the reference executor. Fails the test on an error.
std::vector<Tensor> Evaluate(const Expr& function, const std::vector<Tensor>& inputs);
/// Seeded tensors for the parameters, tuples flattened.
std::vector<Tensor> RandomInputs(const Expr& function, uint64_t seed);
/// Expects equal results for seeded inputs.
void ExpectSameResults(const Expr& actual, const Expr& expected, uint64_t seed);

/// A function from Relay text, constants seeded. `names` receives what the text calls its expressions.
Expr ParseFunction(const std::string& text, std::unordered_map<std::string, Expr>* names = nullptr);

/// A seeded function of pointwise operators, splits, concatenations, tuples and several results over small tensors.
Expr RandomFunction(uint64_t seed, size_t operators);

}  // namespace collage
