#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "collage/ir/expr.h"

namespace collage::conformance {

using Ints = std::vector<int64_t>;

/// A function and the values that its parameters may take.
struct Program {
  struct Range {
    double low = -1;
    double high = 1;  ///< exclusive
  };
  Expr function;
  std::vector<Range> ranges;  ///< one a parameter

  [[nodiscard]] const Function& Get() const { return *function->As<Function>(); }
  /// Seeded values for every parameter.
  [[nodiscard]] std::vector<Tensor> RandomInputs(uint64_t seed) const;
};

/// Programs are made when a test runs, so that one that cannot be built fails its own test only.
struct ProgramCase {
  std::string name;
  std::function<Program()> make;
};

/// The name, where GoogleTest prints a parameter.
inline void PrintTo(const ProgramCase& program, std::ostream* stream) { *stream << program.name; }

/// Builds a program expression by expression; what does not type-check throws std::runtime_error with the type rule's message.
class ProgramBuilder {
 public:
  Expr Input(Shape shape, double low = -1, double high = 1, DType dtype = DType::kFloat32);
  /// A constant of seeded values, scaled so that a sum over `fan_in` products keeps the scale of the data.
  Expr Weight(Shape shape, int64_t fan_in = 1);
  /// A constant of seeded values in [low, high).
  Expr Constant(Shape shape, double low, double high, DType dtype = DType::kFloat32);
  static Expr Scalar(double value, DType dtype = DType::kFloat32);
  static Expr Call(const std::string& op, std::vector<Expr> args, Attributes attributes = {});
  static Expr Get(const Expr& tuple, size_t index);
  Program Finish(const Expr& body);

  // Short forms for what the corpus says often. Weights and biases are constants.

  /// OIHW weight of `channels` filters of `kernel` x `kernel`; "padding" is kernel / 2 unless the attributes say otherwise.
  Expr Conv2d(const Expr& data, int64_t channels, int64_t kernel, Attributes attributes = {});
  Expr Bias(const Expr& data, int64_t axis = 1);
  Expr Dense(const Expr& data, int64_t units);
  static Expr Relu(const Expr& data) { return Call("nn.relu", {data}); }
  static Expr Add(const Expr& a, const Expr& b) { return Call("add", {a, b}); }
  static Expr Multiply(const Expr& a, const Expr& b) { return Call("multiply", {a, b}); }
  /// Decomposed as an exporter writes them; over the last axis.
  Expr LayerNorm(const Expr& data);
  static Expr Gelu(const Expr& data);

 private:
  std::vector<Expr> parameters_;
  std::vector<Program::Range> ranges_;
  uint64_t seed_ = 17;
};

/// Shape of a tensor expression.
const Shape& ShapeOf(const Expr& expr);

}  // namespace collage::conformance
