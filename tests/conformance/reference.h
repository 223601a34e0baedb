#pragma once

#include <unordered_map>
#include <vector>

#include "collage/ir/op_sequence.h"

namespace collage::conformance {

/// Every tensor of a straight-line function, computed by the operators' reference kernels.
class ReferenceRun {
 public:
  ReferenceRun(const Function& function, const std::vector<Tensor>& inputs);

  [[nodiscard]] std::vector<Tensor> Results() const;
  /// The tensors of a parameter, a constant or a call of an operator (several where it gives a tuple).
  [[nodiscard]] std::vector<Tensor> Of(const Expr& expr) const;

 private:
  OpSequence sequence_;
  std::vector<Tensor> values_;
  std::unordered_map<const ExprNode*, std::vector<size_t>> tensors_of_;
};

}  // namespace collage::conformance
