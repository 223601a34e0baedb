#include "tests/ir/small_table.h"

#include <algorithm>
#include <cstdlib>

namespace collage {
namespace {

Result<const TensorType*> TensorAt(std::span<const Type> types, size_t index) {
  const TensorType* tensor = types[index].AsTensor();
  if (!tensor) return Fail("argument " + std::to_string(index) + " has type " + ToString(types[index]) + ", expected a tensor");
  return tensor;
}

Result<Type> SameType(std::span<const Type> types, const Attributes&) { return Type(*COLLAGE_TRY(TensorAt(types, 0))); }

// NumPy broadcasting.
Result<Type> Broadcast(std::span<const Type> types, const Attributes&) {
  const TensorType& a = *COLLAGE_TRY(TensorAt(types, 0));
  const TensorType& b = *COLLAGE_TRY(TensorAt(types, 1));
  TensorType result{Shape(std::max(a.shape.size(), b.shape.size()), 1), a.dtype};
  for (const Shape* shape : {&a.shape, &b.shape}) {
    for (size_t i = 1; i <= shape->size(); ++i) {
      int64_t& extent = result.shape[result.shape.size() - i];
      const int64_t other = (*shape)[shape->size() - i];
      if (extent != 1 && other != 1 && extent != other) {
        return Fail("shapes " + ToString(a.shape) + " and " + ToString(b.shape) + " do not broadcast");
      }
      if (other != 1) extent = other;
    }
  }
  if (a.dtype != b.dtype) return Fail("dtypes " + std::string(Name(a.dtype)) + " and " + std::string(Name(b.dtype)) + " differ");
  return Type(std::move(result));
}

Result<Type> Compare(std::span<const Type> types, const Attributes& attributes) {
  TensorType type = *COLLAGE_TRY(Broadcast(types, attributes)).AsTensor();
  type.dtype = DType::kBool;
  return Type(std::move(type));
}

Result<Type> Pad(std::span<const Type> types, const Attributes& attributes) {
  TensorType type = *COLLAGE_TRY(TensorAt(types, 0));
  const AttributeValue::List* widths = attributes.Find("pad_width") ? attributes.Find("pad_width")->AsList() : nullptr;
  if (!widths || widths->size() != type.shape.size()) return Fail("pad_width has not one entry a dimension");
  for (size_t i = 0; i < widths->size(); ++i) {
    const AttributeValue::List* pair = (*widths)[i].AsList();
    if (!pair) return Fail("an entry of pad_width is not a list");
    for (const AttributeValue& width : *pair) {
      if (!width.AsInt() || std::abs(*width.AsInt()) > 1000) return Fail("a width is not a small integer");
      type.shape[i] += *width.AsInt();
    }
  }
  return Type(std::move(type));
}

// Windows without padding; channels from the weight where there is one.
Result<Type> Window(std::span<const Type> types, const Attributes& attributes) {
  TensorType type = *COLLAGE_TRY(TensorAt(types, 0));
  if (type.shape.size() != 4) return Fail("data has shape " + ToString(type.shape) + ", expected four dimensions");
  std::vector<int64_t> extents = COLLAGE_TRY(attributes.Ints("pool_size", {1, 1}));
  if (types.size() == 2) {
    const TensorType& weight = *COLLAGE_TRY(TensorAt(types, 1));
    if (weight.shape.size() != 4 || weight.shape[1] != type.shape[1]) return Fail("the weight does not fit the data");
    type.shape[1] = weight.shape[0];
    extents = {weight.shape[2], weight.shape[3]};
  }
  const std::vector<int64_t> strides = COLLAGE_TRY(attributes.Ints("strides", {1, 1}));
  if (extents.size() != 2 || strides.size() != 2 || strides[0] < 1 || strides[1] < 1) return Fail("the window is not two extents");
  for (size_t i = 0; i < 2; ++i) type.shape[2 + i] = (type.shape[2 + i] - extents[i]) / strides[i] + 1;
  return Type(std::move(type));
}

Result<Type> Dense(std::span<const Type> types, const Attributes&) {
  TensorType type = *COLLAGE_TRY(TensorAt(types, 0));
  const Shape& weight = COLLAGE_TRY(TensorAt(types, 1))->shape;
  if (type.shape.empty() || weight.size() != 2) return Fail("the weight has shape " + ToString(weight) + ", expected two dimensions");
  type.shape.back() = weight[0];
  return Type(std::move(type));
}

Result<Type> Reshape(std::span<const Type> types, const Attributes& attributes) {
  TensorType type = *COLLAGE_TRY(TensorAt(types, 0));
  Shape shape = COLLAGE_TRY(attributes.Ints("newshape", {}));
  if (std::any_of(shape.begin(), shape.end(), [](int64_t extent) { return extent < 0 || extent > 100'000; }) || shape.size() > 3) {
    return Fail("newshape has large extents");
  }
  if (ElementCount(shape) != type.ElementCount()) return Fail("newshape has another number of elements");
  type.shape = std::move(shape);
  return Type(std::move(type));
}

Result<Type> Split(std::span<const Type> types, const Attributes&) {
  TensorType half = *COLLAGE_TRY(TensorAt(types, 0));
  if (half.shape.empty()) return Fail("a scalar cannot be split");
  half.shape[0] /= 2;
  return Type(TupleType{{half, half}});
}

Result<Type> Concatenate(std::span<const Type> types, const Attributes&) {
  const TupleType* tuple = types[0].AsTuple();
  const bool tensors = tuple && !tuple->fields.empty() && tuple->fields[0].AsTensor();
  if (!tensors || tuple->fields[0].AsTensor()->shape.empty()) return Fail("expected a tuple of tensors");
  TensorType type = *tuple->fields[0].AsTensor();
  type.shape[0] *= static_cast<int64_t>(tuple->fields.size());
  return Type(std::move(type));
}

Result<Type> Zeros(std::span<const Type>, const Attributes& attributes) {
  return Type(TensorType{COLLAGE_TRY(attributes.Ints("shape", {})), DType::kFloat32});
}

OpDef Record(std::string name, std::vector<std::string> arguments, OpDef::TypeRule rule, const std::vector<std::string>& attributes = {}) {
  OpDef op;
  op.name = std::move(name);
  op.argument_names = std::move(arguments);
  op.infer_type = std::move(rule);
  for (const std::string& attribute : attributes) op.attributes.push_back({attribute, "list", ""});
  return op;
}

OpTable Make() {
  OpTable table;
  for (const char* name : {"add", "multiply", "subtract"}) table.Add(Record(name, {"a", "b"}, Broadcast));
  for (const char* name : {"nn.relu", "exp"}) table.Add(Record(name, {"data"}, SameType));
  table.Add(Record("less", {"a", "b"}, Compare));
  table.Add(Record("nn.pad", {"data", "pad_value"}, Pad, {"pad_width"}));
  table.Add(Record("nn.conv2d", {"data", "weight"}, Window, {"strides", "padding", "channels", "kernel_size"}));
  table.Add(Record("nn.max_pool2d", {"data"}, Window, {"pool_size", "strides", "padding"}));
  table.Add(Record("nn.dense", {"data", "weight"}, Dense, {"units", "out_dtype"}));
  table.Add(Record("reshape", {"data"}, Reshape, {"newshape"}));
  table.Add(Record("split", {"data"}, Split));
  table.Add(Record("concatenate", {"data"}, Concatenate));
  table.Add(Record("zeros", {}, Zeros, {"shape"}));
  table.Add(Record("annotate", {"data"}, SameType, {"float", "int", "text", "none", "flag", "list"}));
  return table;
}

}  // namespace

const OpTable& SmallTable() {
  static const OpTable table = Make();
  return table;
}

}  // namespace collage
