#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "collage/ir/parse.h"

namespace collage {

/// The names visible at one point of a text, and the table of all names that a function has bound so far.
class Scopes {
 public:
  /// `function` scopes count as deeper for the table of names, the braces of if do not.
  void Push(bool function);
  /// The same for braces, which are a block of the text; gives its number, counted from 1 (0 is what stands in no braces).
  size_t PushBlock();
  void Pop();
  void Bind(const std::string& name, const Expr& expr);
  /// Null when nothing of that name is visible.
  [[nodiscard]] Expr Find(const std::string& name) const;
  /// The table so far, which starts anew.
  NameTable TakeNames();
  /// Every binding so far in the order of the text; starts anew.
  BindingList TakeBindings();

 private:
  struct Frame {
    std::unordered_map<std::string, Expr> locals;
    bool function;
    size_t block;  // innermost braces
  };
  struct Named {
    Expr expr;
    size_t depth;
  };
  std::vector<Frame> frames_;
  std::unordered_map<std::string, Named> names_;
  BindingList bindings_;
  size_t blocks_ = 0;
  size_t function_depth_ = 0;
};

}  // namespace collage
