#pragma once

// Compiles a function with the native backend, runs it and compares with the reference kernels.

#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/runtime/device.h"
#include "collage/tensor/layout.h"

namespace collage::testing {

Expr Parameter(const std::string& name, Shape shape, DType dtype = DType::kFloat32);
/// A call of an operator by name; a type error fails the test and gives null.
Expr CallNamed(const std::string& op, std::vector<Expr> args, Attributes attributes = {});
/// A constant with seeded values.
Expr RandomConstant(Shape shape, uint64_t seed, double low = -1, double high = 1);
Expr ScalarConstant(double value, DType dtype = DType::kFloat32);

struct CheckOptions {
  double tolerance = 2e-5;
  double low = -2;
  double high = 2;
  uint64_t seed = 7;
};

/// For one and two threads: every variant is compiled, run twice, saved, loaded and run again; all results must be close to
/// those of the reference kernels. Parameters are taken as given.
void ExpectMatchesReference(const std::vector<Expr>& parameters, const Expr& body, const CheckOptions& options = {});

}  // namespace collage::testing
