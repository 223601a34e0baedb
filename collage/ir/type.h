#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "collage/tensor/tensor_type.h"

namespace collage {

class Type;

struct TupleType {
  std::vector<Type> fields;
};

struct FunctionType {
  std::vector<Type> parameters;
  std::shared_ptr<const Type> result;
};

/// Type of an expression: a tensor (scalars are tensors without dimensions), a tuple or a function.
class Type {
 public:
  Type() = default;
  Type(TensorType tensor) : value_(std::move(tensor)) {}        // NOLINT(google-explicit-constructor)
  Type(TupleType tuple) : value_(std::move(tuple)) {}           // NOLINT(google-explicit-constructor)
  Type(FunctionType function) : value_(std::move(function)) {}  // NOLINT(google-explicit-constructor)

  /// False for the type of an operator used as a value, which has none.
  [[nodiscard]] bool Defined() const { return !std::holds_alternative<std::monostate>(value_); }
  [[nodiscard]] const TensorType* AsTensor() const { return std::get_if<TensorType>(&value_); }
  [[nodiscard]] const TupleType* AsTuple() const { return std::get_if<TupleType>(&value_); }
  [[nodiscard]] const FunctionType* AsFunction() const { return std::get_if<FunctionType>(&value_); }

  friend bool operator==(const Type& a, const Type& b);

 private:
  std::variant<std::monostate, TensorType, TupleType, FunctionType> value_;
};

/// Relay's form: "Tensor[(1, 10), float32]", "(T, U)", "fn (T) -> U".
std::string ToString(const Type& type);

/// The tensors of a type in order; nested tuples are flattened. A function type has none.
std::vector<TensorType> FlattenTensors(const Type& type);

/// How many values a type has, nested tuples flattened; a function type counts as one.
size_t ValueCount(const Type& type);
/// Where the values of a field begin among all of its tuple.
size_t FirstValue(const TupleType& tuple, size_t field);
/// A value of a tuple: field, and which of the field's own it is.
struct ValuePlace {
  size_t field;
  size_t value;
};
/// There must be that value.
ValuePlace FindValue(const TupleType& tuple, size_t value);

}  // namespace collage
