#pragma once

// Equality and hash of programs by structure. Names of variables do not count, and neither does the order of attributes.
// Sharing counts: an expression used twice differs from two equal expressions, since it is computed once (constants, operators
// and @names excepted, which cost nothing to repeat). Both take time linear in the number of expressions and no recursion.

#include <cstdint>
#include <string>
#include <vector>

#include "collage/ir/module.h"

namespace collage {

struct StructuralOptions {
  /// False: a constant counts by its type alone, except one of a single element, whose value decides what may be made of a
  /// program (power(x, 2), or a predicate of a backend).
  bool constants_by_value = true;
  /// Attributes of functions that do not count, such as "global_symbol".
  std::vector<std::string> ignored_function_attributes;
};

/// What keys the prices of candidates: weights by type, symbols left out.
StructuralOptions ForPricing();

/// Free variables are equal only to themselves.
bool StructuralEqual(const Expr& a, const Expr& b, const StructuralOptions& options = {});
/// The same functions by name, in any order.
bool StructuralEqual(const IRModule& a, const IRModule& b, const StructuralOptions& options = {});

/// Equal programs have equal hashes; free variables count by type and order of appearance. Stable: it depends on names of
/// operators, types, attributes and values only, so it may be written to disk and read by another process or build.
uint64_t StructuralHash(const Expr& expr, const StructuralOptions& options = {});
uint64_t StructuralHash(const IRModule& module, const StructuralOptions& options = {});

/// What keys the verdict on a program: structure and every byte of its constants, symbols left out. It takes the time of reading them once.
uint64_t ContentHash(const Expr& expr);
uint64_t ContentHash(const IRModule& module);

}  // namespace collage
