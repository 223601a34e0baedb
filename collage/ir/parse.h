#pragma once

// Reads the text form of the IR, which is Relay's:
//
//     def @main(%x: Tensor[(1, 8), float32]) -> Tensor[(1, 8), float32] {
//       %0 = add(%x, 1f);                                  a numbered binding: an expression that may be used several times
//       let %y = nn.relu(%0);                              a variable
//       if (%c) { multiply(%y, meta[relay.Constant][0] /*Tensor[(1, 8), float32]*/) } else { (%y, %0).0 }
//     }
//
// A text is one bare function, which becomes @main, or any number of "def"s, which may call each other. Numbered bindings and
// variables are visible to the end of the braces that hold them, and inside function literals there. "%name = ..." with a name
// in place of a number is read as a numbered binding. Comments are "/* */", "//" and "#". The printed form is in print.h.

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collage/ir/module.h"

namespace collage {

/// Answers the constant `meta[relay.Constant][index]`, whose type the text states behind it.
using MissingConstant = std::function<Result<Tensor>(size_t index, const TensorType& type)>;

/// Constants of seeded random values (FillRandom with `seed` + index); narrow types (tensor/narrow.h) are zero.
MissingConstant RandomConstants(uint64_t seed);
/// Constants of zeros.
MissingConstant ZeroConstants();

struct ParseOptions {
  /// The table that "meta[relay.Constant][i]" indexes; what is not defined is missing.
  std::vector<Tensor> constants;
  /// Asked for what is not in the table but has its type in a comment behind it. Without it a missing constant is an error.
  MissingConstant missing_constant;
  /// Variables that the text may use without binding them (ParseExpr).
  std::vector<Expr> variables;
  /// What errors call the table; empty: by how many it has.
  std::string table_name = {};
};

/// Names of one function (without "%") and what they stand for, bindings inside function literals included. Where a name is
/// bound several times the outermost binding wins, then the last.
using NameTable = std::unordered_map<std::string, Expr>;

/// A name (without "%") and what it was bound to: a parameter, a numbered binding or a variable of let.
struct Binding {
  std::string name;
  Expr expr;
  size_t block = 0;  ///< index into ParsedModule::blocks: the innermost braces around the binding (not so for parameters)
};
/// In the order of the text, those inside function literals and branches included. The same name may stand several times.
using BindingList = std::vector<Binding>;

/// What stands between braces: the body of a function (part 0), or a branch of an if (part 0 or 1).
struct TextBlock {
  const ExprNode* owner = nullptr;
  size_t part = 0;
};

struct ParsedModule {
  IRModule module;
  /// By name of the global function.
  std::unordered_map<std::string, NameTable> names;
  /// By name of the global function: what a reader needs who speaks of every expression by the name that the text gives it.
  std::unordered_map<std::string, BindingList> bindings;
  std::vector<TextBlock> blocks;
  /// The expressions that "meta[relay.Constant][i]" became.
  std::unordered_map<const ExprNode*, size_t> constants;
};

struct ParsedExpr {
  Expr expr;
  NameTable names;
};

/// Operators are looked up in `ops`, which must outlive the result. Calls are checked as they are read: an error of any kind is
/// "line:column: what is wrong, what was expected". Nothing is verified beyond scoping and types (see verify.h). The origin of a
/// call is the place of its first word.
Result<ParsedModule> ParseModule(std::string_view text, const OpTable& ops, const ParseOptions& options = {});

/// Reads a type: "Tensor[(1, 8), float32]", "float32", "(T, U)", "fn (T) -> U".
Result<Type> ParseTypeText(std::string_view text);

/// Reads one expression; it may begin with bindings ("%0 = ...; ...").
Result<ParsedExpr> ParseExpr(std::string_view text, const OpTable& ops, const ParseOptions& options = {});

}  // namespace collage
