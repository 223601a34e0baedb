#pragma once

// Writes the text form of the IR (see parse.h), in one canonical way:
//
// * one line a binding; every call, tuple, projection, if and function literal gets a number, except the result of its scope
//   and the value of a let that nobody else uses; constants, variables and @names stand where they are used;
// * an expression that is used in several scopes (branches of if, bodies of functions and lets) is bound in the innermost
//   scope that holds all its uses: sharing is kept, nothing is printed twice;
// * numbers count from 0 in the order in which bindings end, per function of the module, insides of function literals
//   included; attributes stand in the order in which they were given; indentation is two spaces;
// * names of variables are kept, made unique by a number where two variables of one function share a name, and characters that
//   the text form does not have become "_";
// * scalars stand in the text ("0f", "3i64", "True"); all other constants, and not-a-numbers, go into the table beside it.
//
// Parsing the text with the table gives a structurally equal module, and text in this form prints back as it was.

#include <string>
#include <unordered_map>
#include <vector>

#include "collage/ir/module.h"

namespace collage {

struct PrintedText {
  std::string text;
  /// What "meta[relay.Constant][i]" stands for.
  std::vector<Tensor> constants;
  /// The name ("%3", "%x") of each numbered expression and each variable. Keys live as long as what was printed.
  std::unordered_map<const ExprNode*, std::string> names;
};

/// "def @name(...) -> T { ... }" for every function.
PrintedText PrintModule(const IRModule& module);
/// A bare expression; a function literal prints as "fn (...) -> T { ... }".
PrintedText PrintExpr(const Expr& expr);

/// The text alone.
std::string Print(const IRModule& module);
std::string Print(const Expr& expr);

}  // namespace collage
