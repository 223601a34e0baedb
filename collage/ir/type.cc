#include "collage/ir/type.h"

namespace collage {

bool operator==(const Type& a, const Type& b) {
  if (const auto* x = a.AsTensor(), *y = b.AsTensor(); x && y) return *x == *y;
  if (const auto* x = a.AsTuple(), *y = b.AsTuple(); x && y) return x->fields == y->fields;
  if (const auto* x = a.AsFunction(), *y = b.AsFunction(); x && y) return x->parameters == y->parameters && *x->result == *y->result;
  return a.value_.index() == b.value_.index() && !a.Defined();
}

namespace {

std::string List(const std::vector<Type>& types) {
  std::string text = "(";
  for (size_t i = 0; i < types.size(); ++i) text += (i ? ", " : "") + ToString(types[i]);
  return text;
}

void Flatten(const Type& type, std::vector<TensorType>& tensors) {
  if (const TensorType* tensor = type.AsTensor()) tensors.push_back(*tensor);
  if (const TupleType* tuple = type.AsTuple()) {
    for (const Type& field : tuple->fields) Flatten(field, tensors);
  }
}

}  // namespace

std::string ToString(const Type& type) {
  if (const TensorType* tensor = type.AsTensor()) return ToString(*tensor);
  if (const TupleType* tuple = type.AsTuple()) return List(tuple->fields) + (tuple->fields.size() == 1 ? ",)" : ")");
  if (const FunctionType* function = type.AsFunction()) return "fn " + List(function->parameters) + ") -> " + ToString(*function->result);
  return "operator";
}

std::vector<TensorType> FlattenTensors(const Type& type) {
  std::vector<TensorType> tensors;
  Flatten(type, tensors);
  return tensors;
}

size_t ValueCount(const Type& type) {
  const TupleType* tuple = type.AsTuple();
  return tuple ? FirstValue(*tuple, tuple->fields.size()) : 1;
}

size_t FirstValue(const TupleType& tuple, size_t field) {
  size_t first = 0;
  for (size_t i = 0; i < field; ++i) first += ValueCount(tuple.fields[i]);
  return first;
}

ValuePlace FindValue(const TupleType& tuple, size_t value) {
  size_t field = 0;
  for (size_t count; value >= (count = ValueCount(tuple.fields[field])); ++field) value -= count;
  return {field, value};
}

}  // namespace collage
