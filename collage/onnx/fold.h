#pragma once

#include "collage/ir/expr.h"

namespace collage::onnx_io {

/// Makes calls of operators while a model is read, and computes those whose arguments are all constant with the operator's
/// reference kernel. A model from outside can ask for absurd amounts of either memory or work, so both are bounded: a result
/// over the memory limit is an error, a call over the work limit stays a call.
class ConstantFolder {
 public:
  /// `origin` is the call's; a constant that it is folded into comes from its arguments too.
  Result<Expr> Call(const OpDef* op, const std::vector<Expr>& args, const Attributes& attributes, const Origin& origin);

  /// Raises the limit by a multiple of what the model itself holds: a small file may make 1 GB of constants, a large one more.
  void Allow(double bytes) { limit_ += 4 * bytes; }
  /// From now on so many bytes are the limit, nothing booked, and work has none: what is called is wanted now.
  void ComputeWithin(double bytes) {
    limit_ = bytes;
    reserved_bytes_ = 0;
    limits_work_ = false;
  }
  /// Notes an expression whose value had to be known and was not: the reader then looks which inputs it depends on.
  void RequireValue(const Expr& expr) { required_ = expr; }
  /// The last of them; null where there was none.
  [[nodiscard]] const Expr& required() const { return required_; }
  void ForgetRequired() { required_ = nullptr; }
  /// Books `bytes` for a constant that is about to be made; an error when the sum exceeds the limit.
  Status Reserve(double bytes);

 private:
  [[nodiscard]] bool MayFold(const OpDef& op, const Expr& call) const;
  Result<Expr> Fold(const OpDef& op, const std::vector<Expr>& args, const Expr& call);

  Expr required_;
  double limit_ = 1e9;
  double reserved_bytes_ = 0;
  bool limits_work_ = true;
};

/// The value of a constant expression, or null.
const Tensor* ConstantValue(const Expr& expr);

/// An error where a shape has more elements than any machine could hold, so that products of extents cannot overflow.
Status CheckExtents(const Shape& shape);

}  // namespace collage::onnx_io
