#pragma once

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "collage/onnx/node_reader.h"

namespace collage::onnx_io {

/// Element-wise arithmetic for operators that are read as a composition of simpler ones. Numbers become scalar constants of
/// the dtype given. The first error sticks, and is what Done() gives.
class Formula {
 public:
  Formula(NodeReader& node, DType dtype) : node_(&node), dtype_(dtype) {}

  class Term {
   public:
    Term(Expr expr) : expr_(std::move(expr)) {}  // NOLINT(google-explicit-constructor)
    Term(double number) : number_(number) {}     // NOLINT(google-explicit-constructor)

   private:
    friend class Formula;
    Expr expr_;
    std::optional<double> number_;
  };

  Expr Call(const std::string& op, const Term& a) { return Apply(op, {Value(a)}); }
  Expr Call(const std::string& op, const Term& a, const Term& b) { return Apply(op, {Value(a), Value(b)}); }
  Expr Call(const std::string& op, const Term& a, const Term& b, const Term& c) { return Apply(op, {Value(a), Value(b), Value(c)}); }
  Expr Clip(const Term& a, double low, double high) { return Apply("clip", {Value(a)}, {{"a_min", low}, {"a_max", high}}); }

  /// Any operator. After an error, and for an argument that is null because of one, nothing happens and the result is null.
  Expr Apply(const std::string& op, const std::vector<Expr>& args, const Attributes& attributes = {}) {
    if (!status_) return nullptr;
    // Of another formula, which has failed.
    if (std::find(args.begin(), args.end(), nullptr) != args.end()) return Keep(Fail("an operand of " + op + " cannot be computed"));
    return Keep(node_->Call(op, args, attributes));
  }
  Expr Number(double value) { return Keep(NodeReader::Scalar(value, dtype_)); }
  /// A constant; an error where the model would make more of those than it may.
  Expr Zeros(const Shape& shape, DType dtype) {
    const TensorType type{shape, dtype};
    return Reserve(type) ? MakeConstant(Tensor(type)) : nullptr;
  }
  /// 0, 1, 2, ... as int64; an error likewise.
  Expr Iota(const Shape& shape) {
    if (!Reserve({shape, DType::kInt64})) return nullptr;
    std::vector<int64_t> values(static_cast<size_t>(ElementCount(shape)));
    std::iota(values.begin(), values.end(), 0);
    return MakeConstant(Tensor::FromVector(TensorType{shape, DType::kInt64}, values));
  }
  Expr Cast(const Expr& a, DType dtype) {
    return a == nullptr || a->type().AsTensor()->dtype == dtype ? a : Apply("cast", {a}, {{"dtype", std::string(Name(dtype))}});
  }
  Expr Reshape(const Expr& a, const Shape& shape) { return a == nullptr ? a : Keep(node_->Reshape(a, shape)); }
  Expr Transpose(const Expr& a, const std::vector<int64_t>& axes) { return Apply("transpose", {a}, {{"axes", axes}}); }
  Expr Broadcast(const Expr& a, const Shape& shape) {
    return a == nullptr || ShapeOf(a) == shape ? a : Apply("broadcast_to", {a}, {{"shape", shape}});
  }
  /// Elements begin to end (not included) of one axis.
  Expr Slice(const Expr& a, int64_t axis, int64_t begin, int64_t end) {
    return Apply("strided_slice", {a}, {{"begin", begin}, {"end", end}, {"strides", 1}, {"axes", axis}});
  }
  Expr Reverse(const Expr& a, int64_t axis) {
    if (a == nullptr) return a;
    const int64_t extent = ShapeOf(a)[static_cast<size_t>(axis)];
    return Apply("strided_slice", {a}, {{"begin", extent - 1}, {"end", -extent - 1}, {"strides", -1}, {"axes", axis}});
  }
  Expr Concatenate(const std::vector<Expr>& parts, int64_t axis) { return parts.size() == 1 ? parts[0] : Join("concatenate", parts, axis); }
  /// Along a new axis.
  Expr Stack(const std::vector<Expr>& parts, int64_t axis) { return Join("stack", parts, axis); }
  Expr Reduce(const std::string& op, const Expr& a, const std::vector<int64_t>& axes, bool keepdims) {
    return Apply(op, {a}, {{"axis", axes}, {"keepdims", keepdims}});
  }
  Expr Project(const Expr& tuple, size_t index) { return tuple == nullptr ? tuple : Keep(NodeReader::Project(tuple, index)); }
  /// Empty after an error.
  static Shape ShapeOf(const Expr& a) { return a == nullptr ? Shape{} : a->type().AsTensor()->shape; }
  /// Fails with such an error, unless there was one before.
  Expr Refuse(std::string message) { return Keep(Fail(std::move(message))); }
  [[nodiscard]] bool ok() const { return status_.has_value(); }
  [[nodiscard]] DType dtype() const { return dtype_; }

  /// The outputs of a node whose only output is `result`, or the first error.
  [[nodiscard]] Result<std::vector<Expr>> Done(const Expr& result) const {
    if (!status_) return Fail(status_.error());
    return std::vector<Expr>{result};
  }
  /// Of a node with several outputs, some of which may be null: not supported.
  [[nodiscard]] Result<std::vector<Expr>> DoneAll(std::vector<Expr> results) const {
    if (!status_) return Fail(status_.error());
    return results;
  }

 private:
  Expr Join(const std::string& op, const std::vector<Expr>& parts, int64_t axis) {
    if (!status_) return nullptr;
    if (std::find(parts.begin(), parts.end(), nullptr) != parts.end()) return Keep(Fail("a part of " + op + " cannot be computed"));
    return Apply(op, {MakeTuple(parts)}, {{"axis", axis}});
  }
  bool Reserve(const TensorType& constant) {
    if (status_) status_ = CheckExtents(constant.shape);
    if (status_) status_ = node_->folder().Reserve(static_cast<double>(constant.ByteCount()));
    return ok();
  }
  Expr Value(const Term& term) { return term.number_ ? Keep(NodeReader::Scalar(*term.number_, dtype_)) : term.expr_; }
  Expr Keep(Result<Expr> result) {
    if (result) return *result;
    if (status_) status_ = Fail(result.error());
    return nullptr;
  }

  NodeReader* node_;
  DType dtype_;
  Status status_;
};

}  // namespace collage::onnx_io
