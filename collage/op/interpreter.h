#pragma once

// The reference executor: runs a module on the reference kernels, one operator after another, on one thread. It is the truth
// that plans are compared with, so it does nothing clever: functions that carry "Primitive", "Compiler" or "Composite" are
// looked into like any other, and only what keeps large models inside memory is done (a tensor is freed after its last use).

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "collage/ir/module.h"
#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

struct Closure;

/// What an expression evaluates to: a tensor, a tuple of values, or a function together with the variables it captured.
class Value {
 public:
  Value() = default;
  Value(Tensor tensor) : value_(std::move(tensor)) {}  // NOLINT(google-explicit-constructor)
  Value(std::vector<Value> fields)                     // NOLINT(google-explicit-constructor)
      : value_(std::make_shared<const std::vector<Value>>(std::move(fields))) {}
  Value(std::shared_ptr<const Closure> closure) : value_(std::move(closure)) {}  // NOLINT(google-explicit-constructor)

  /// Null when it is something else.
  [[nodiscard]] const Tensor* AsTensor() const { return std::get_if<Tensor>(&value_); }
  [[nodiscard]] const std::vector<Value>* AsTuple() const;
  [[nodiscard]] const Closure* AsClosure() const;
  /// The type of a tensor or a tuple of such; a function has the type of its literal.
  [[nodiscard]] Type type() const;

 private:
  std::variant<Tensor, std::shared_ptr<const std::vector<Value>>, std::shared_ptr<const Closure>> value_;
};

/// Tensors of a value in order, nested tuples flattened.
std::vector<Tensor> FlattenTensors(const Value& value);

struct InterpreterOptions {
  /// Called after each operator with its call and what it gave: for progress, or to look at intermediate values.
  std::function<void(const Expr& call, std::span<const Tensor> outputs)> on_operator;
  /// Asked before each operator and each call of a function: true ends the run with an error.
  std::function<bool()> should_stop;
  /// As on_operator, with what the operator was given (tuples flattened).
  std::function<void(const Expr& call, std::span<const Tensor> inputs, std::span<const Tensor> outputs)> on_values;
  /// Called before these, and may change what the operator gave (RoundingEffect).
  std::function<void(const Expr& call, std::span<Tensor> outputs)> round;
};

/// Runs a function of a module. Errors: no such function, arguments that are not of the parameters' types, a variable that
/// nothing binds, a call of a function that the module does not have.
Result<Value> Interpret(const IRModule& module, const std::string& function, std::vector<Value> arguments,
                        const InterpreterOptions& options = {});

/// As above with tensors in and tensors out: tuple parameters take as many inputs as they have tensors, results are flattened.
Result<std::vector<Tensor>> InterpretTensors(const IRModule& module, const std::string& function, const std::vector<Tensor>& inputs,
                                             const InterpreterOptions& options = {});
/// Of "main".
Result<std::vector<Tensor>> InterpretMain(const IRModule& module, const std::vector<Tensor>& inputs,
                                          const InterpreterOptions& options = {});
/// Of one Function expression that calls no function of a module: a candidate, a partition.
Result<std::vector<Tensor>> InterpretFunction(const Expr& function, const std::vector<Tensor>& inputs,
                                              const InterpreterOptions& options = {});

}  // namespace collage
