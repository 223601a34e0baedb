#pragma once

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
    double number_ = 0;
  };

  Expr Call(const std::string& op, const Term& a) { return Apply(op, {Value(a)}); }
  Expr Call(const std::string& op, const Term& a, const Term& b) { return Apply(op, {Value(a), Value(b)}); }
  Expr Call(const std::string& op, const Term& a, const Term& b, const Term& c) { return Apply(op, {Value(a), Value(b), Value(c)}); }
  Expr Clip(const Term& a, double low, double high) { return Apply("clip", {Value(a)}, {{"a_min", low}, {"a_max", high}}); }

  /// The outputs of a node whose only output is `result`, or the first error.
  [[nodiscard]] Result<std::vector<Expr>> Done(const Expr& result) const {
    if (!status_) return Fail(status_.error());
    return std::vector<Expr>{result};
  }

 private:
  Expr Value(const Term& term) {
    if (term.expr_ != nullptr) return term.expr_;
    return Keep(NodeReader::Scalar(term.number_, dtype_));
  }
  Expr Apply(const std::string& op, std::vector<Expr> args, Attributes attributes = {}) {
    if (!status_) return nullptr;
    return Keep(node_->Call(op, std::move(args), std::move(attributes)));
  }
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
