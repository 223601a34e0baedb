#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// A deep program of so many operators, made without text.
struct DeepProgram {
  std::string name;
  size_t operators;
  std::function<Expr(size_t operators)> make_of;
  bool is_straight_line = true;  ///< no if, and no function that is called through a variable
  bool can_be_printed = true;    ///< scopes within scopes are indented, which grows with the square of the depth

  [[nodiscard]] Expr Make() const { return make_of(operators); }
};

/// The name, where GoogleTest prints a parameter.
inline void PrintTo(const DeepProgram& program, std::ostream* stream) { *stream << program.name; }

/// A chain of 100 000 operators; and of 20 000, which is as deep for the stacks that they get: a chain of lets; residual blocks; lets
/// within the values of lets; function literals that call each other; ifs whose branches hold the ifs before them.
std::vector<DeepProgram> DeepPrograms();

/// Runs `body` in a thread whose stack has ten bytes for each operator (1 MB for 100 000, an eighth of the usual), so that whatever
/// recurses over the depth of a program crashes there.
void OnSmallStack(size_t operators, const std::function<void()>& body);

}  // namespace collage
