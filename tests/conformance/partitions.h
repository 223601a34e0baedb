#pragma once

#include <string>
#include <vector>

#include "collage/backend/backend.h"
#include "collage/tensor/agreement.h"
#include "tests/conformance/program.h"
#include "tests/conformance/reference.h"

namespace collage::conformance {

/// One tensor of a program: a field of the value of an expression.
struct TensorOf {
  Expr expr;
  size_t field;
};

/// A part of a program that a backend says it takes, as a function of its own.
struct Partition {
  std::string name;
  Expr function;
  std::vector<TensorOf> arguments;  ///< what its parameters stand for
};

struct Partitions {
  std::vector<Partition> taken;
  /// The last refusal, where nothing was taken.
  std::string reason;
};

/// What a backend takes of a program: the candidates that its own rules give, found as for a real compilation, and each call
/// that its predicate accepts alone. A fair choice where there are very many.
Partitions PartitionsOf(const Program& program, const Backend& backend, const Device& device);

/// Inputs of a partition with the values that they have inside its program, and what the partition must make of them.
struct Sample {
  std::vector<Tensor> inputs;
  std::vector<Tensor> expected;
  std::vector<double> steps;      ///< QuantisationSteps
  double tolerance = kTolerance;  ///< by which what is given may differ
};

/// `whole` is a run of the partition's program.
Sample MakeSample(const ReferenceRun& whole, const Partition& partition);

}  // namespace collage::conformance
