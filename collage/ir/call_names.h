#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// What people call the calls of operators in one function: by ONNX nodes that they come from, by the places and the numbers of a text.
class CallNames {
 public:
  /// The names hold as long as `function` lives.
  explicit CallNames(const Expr& function);

  /// As the text form numbers it: "%12", or "result" for what the function returns.
  [[nodiscard]] std::string Number(const Expr& call) const;
  /// For messages: "conv1, bn1 (nn.conv2d)"; where no ONNX node is known "%12 (nn.conv2d)", with " at 3:17" where the text's
  /// place is.
  [[nodiscard]] std::string Describe(const Expr& call) const;
  /// Whether a user may mean the call by `name`: an ONNX node, its number or place, or the operator.
  [[nodiscard]] bool IsCalled(const Expr& call, const std::string& name) const;

 private:
  std::unordered_map<const ExprNode*, std::string> numbers_;
};

}  // namespace collage
