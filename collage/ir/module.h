#pragma once

#include <string>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// Functions by global name (without "@"), in the order in which they were added; "main" is the entry.
class IRModule {
 public:
  IRModule() = default;
  /// A module with one function, "main".
  static IRModule FromMain(Expr function);

  /// Adds or replaces. `function` is a Function expression.
  void Set(const std::string& name, Expr function);
  void Remove(const std::string& name);
  /// Null when absent.
  [[nodiscard]] Expr Find(const std::string& name) const;
  /// The "main" function; the module must have one.
  [[nodiscard]] const Function& Main() const;
  [[nodiscard]] const Expr& MainExpr() const;
  [[nodiscard]] const std::vector<std::pair<std::string, Expr>>& functions() const { return functions_; }

 private:
  std::vector<std::pair<std::string, Expr>> functions_;
};

}  // namespace collage
