#include "collage/op/rules.h"

#include <algorithm>
#include <utility>

#include "collage/support/check.h"
#include "collage/tensor/narrow.h"

namespace collage {
namespace {

constexpr int64_t kMaximumElementCount = int64_t{1} << 40;

bool HasForm(const AttributeValue& value, std::string_view form) {
  if (form == "int") return value.AsInt() != nullptr;
  if (form == "float") return value.AsDouble() || value.AsInt();
  if (form == "bool") return value.AsBool() || (value.AsInt() && (*value.AsInt() == 0 || *value.AsInt() == 1));
  if (form == "string") return value.AsString() != nullptr;
  if (form == "ints") {
    if (value.AsInt()) return true;
    const AttributeValue::List* list = value.AsList();
    return list && std::all_of(list->begin(), list->end(), [](const AttributeValue& item) { return item.AsInt() != nullptr; });
  }
  COLLAGE_CHECK(form == "list", "an attribute of unknown form " + std::string(form));
  return value.AsList() != nullptr;
}

std::string_view Describe(std::string_view form) {
  if (form == "int") return "an integer";
  if (form == "float") return "a number";
  if (form == "bool") return "True or False";
  if (form == "string") return "a string";
  return form == "ints" ? "a list of integers" : "a list";
}

Status CheckAttributes(const std::vector<AttributeSpec>& specs, const Attributes& attributes) {
  for (const AttributeSpec& spec : specs) {
    const AttributeValue* value = attributes.Find(spec.name);
    if (!value || value->IsNone()) {
      if (spec.required) return Fail("attribute '" + spec.name + "' is missing, expected " + std::string(Describe(spec.form)));
    } else if (!HasForm(*value, spec.form)) {
      return Fail("attribute '" + spec.name + "' is " + ToString(*value) + ", expected " + std::string(Describe(spec.form)));
    }
  }
  return {};
}

// Zero extents are left out of the product: (2^40, 2^40, 0) is as unusable as (2^40, 2^40).
Status CheckSize(const TensorType& type) {
  int64_t count = 1;
  for (int64_t extent : type.shape) {
    if (extent < 0) return Fail("the result would have shape " + ToString(type.shape) + ", expected extents of at least 0");
    if (extent > 0 && count > kMaximumElementCount / extent)
      return Fail("the result would have shape " + ToString(type.shape) + ", expected at most 2^40 elements");
    count *= std::max<int64_t>(extent, 1);
  }
  return {};
}

bool HasStrings(const Type& type) {
  if (const TensorType* tensor = type.AsTensor()) return tensor->dtype == DType::kString;
  const TupleType* tuple = type.AsTuple();
  return tuple && std::any_of(tuple->fields.begin(), tuple->fields.end(), HasStrings);
}

Status ExpectNoStrings(TypeArguments arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (HasStrings(arguments[i])) return Fail("argument " + std::to_string(i) + " is of strings, which this operator does not take");
  }
  return {};
}

template <class T>
T Checked(Result<T> value) {
  COLLAGE_CHECK(value.has_value(), value ? "" : value.error().message);
  return std::move(value).value();
}

std::string Text(std::string_view name) { return std::string(name); }

Status ExpectDType(const TensorType& type, std::string_view name, bool holds, std::string_view expected) {
  if (holds) return {};
  return Fail(Text(name) + " has dtype " + std::string(Name(type.dtype)) + ", expected " + std::string(expected));
}

bool AnyNarrow(std::span<const Tensor> tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) { return IsNarrow(tensor.dtype()); });
}

OpDef::ReferenceKernel Widening(OpDef::ReferenceKernel kernel) {
  return [kernel = std::move(kernel)](std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
    if (!AnyNarrow(inputs) && !AnyNarrow(outputs)) return kernel(inputs, attributes, outputs);
    std::vector<Tensor> wide_inputs;
    for (const Tensor& input : inputs) wide_inputs.push_back(Widened(input));
    std::vector<Tensor> wide_outputs;
    for (const Tensor& output : outputs) {
      wide_outputs.push_back(IsNarrow(output.dtype()) ? Tensor(TensorType{output.shape(), WideType(output.dtype())}) : output);
    }
    kernel(wide_inputs, attributes, wide_outputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (IsNarrow(outputs[i].dtype())) Narrow(wide_outputs[i], outputs[i]);
    }
  };
}

}  // namespace

void Register(OpTable& table, OpDef op, NarrowTypes narrow_types) {
  if (narrow_types != NarrowTypes::kAsStored) op.reference = Widening(std::move(op.reference));
  const bool takes_strings = narrow_types != NarrowTypes::kWidened;
  op.infer_type = [rule = std::move(op.infer_type), specs = op.attributes, takes_strings](TypeArguments arguments,
                                                                                          const Attributes& attributes) -> Result<Type> {
    COLLAGE_TRY_STATUS(CheckAttributes(specs, attributes));
    if (!takes_strings) COLLAGE_TRY_STATUS(ExpectNoStrings(arguments));
    Type type = COLLAGE_TRY(rule(arguments, attributes));
    if (!takes_strings && HasStrings(type)) return Fail("the result would be of strings, which this operator does not make");
    for (const TensorType& tensor : FlattenTensors(type)) COLLAGE_TRY_STATUS(CheckSize(tensor));
    return type;
  };
  table.Add(std::move(op));
}

int64_t IntAttribute(const Attributes& attributes, std::string_view name, int64_t fallback) {
  return Checked(attributes.Int(name, fallback));
}
double DoubleAttribute(const Attributes& attributes, std::string_view name, double fallback) {
  return Checked(attributes.Double(name, fallback));
}
bool BoolAttribute(const Attributes& attributes, std::string_view name, bool fallback) { return Checked(attributes.Bool(name, fallback)); }
std::string StringAttribute(const Attributes& attributes, std::string_view name, std::string fallback) {
  return Checked(attributes.String(name, std::move(fallback)));
}
std::vector<int64_t> IntsAttribute(const Attributes& attributes, std::string_view name, std::vector<int64_t> fallback) {
  return Checked(attributes.Ints(name, std::move(fallback)));
}
bool HasAttribute(const Attributes& attributes, std::string_view name) {
  const AttributeValue* value = attributes.Find(name);
  return value && !value->IsNone();
}

Result<TensorType> TensorArgument(TypeArguments arguments, size_t index, std::string_view name) {
  COLLAGE_CHECK(index < arguments.size());
  if (const TensorType* tensor = arguments[index].AsTensor()) return *tensor;
  return Fail(Text(name) + " is of type " + ToString(arguments[index]) + ", expected a tensor");
}

Result<std::vector<TensorType>> TupleArgument(TypeArguments arguments, size_t index, std::string_view name) {
  COLLAGE_CHECK(index < arguments.size());
  const TupleType* tuple = arguments[index].AsTuple();
  if (!tuple) return Fail(Text(name) + " is of type " + ToString(arguments[index]) + ", expected a tuple of tensors");
  if (tuple->fields.empty()) return Fail(Text(name) + " is an empty tuple, expected at least one tensor");
  std::vector<TensorType> tensors;
  for (size_t i = 0; i < tuple->fields.size(); ++i)
    tensors.push_back(COLLAGE_TRY(TensorArgument(tuple->fields, i, Text(name) + "." + std::to_string(i))));
  return tensors;
}

Status ExpectRank(const TensorType& type, std::string_view name, size_t rank) {
  if (type.shape.size() == rank) return {};
  return Fail(Text(name) + " has shape " + ToString(type.shape) + ", expected " + std::to_string(rank) + " dimensions");
}

Status ExpectRankAtLeast(const TensorType& type, std::string_view name, size_t rank) {
  if (type.shape.size() >= rank) return {};
  return Fail(Text(name) + " has shape " + ToString(type.shape) + ", expected at least " + std::to_string(rank) + " dimensions");
}

Status ExpectFloat(const TensorType& type, std::string_view name) {
  return ExpectDType(type, name, IsFloatingPoint(type.dtype), "a floating point type");
}

Status ExpectComputable(const TensorType&, std::string_view) { return {}; }

Status ExpectNumber(const TensorType& type, std::string_view name) {
  return ExpectDType(type, name, type.dtype != DType::kBool && type.dtype != DType::kString, "a floating point or integer type");
}

Status ExpectInteger(const TensorType& type, std::string_view name) {
  return ExpectDType(type, name, !IsFloatingPoint(type.dtype) && type.dtype != DType::kBool && type.dtype != DType::kString,
                     "an integer type");
}

Status ExpectBool(const TensorType& type, std::string_view name) { return ExpectDType(type, name, type.dtype == DType::kBool, "bool"); }

Status ExpectSameDType(const TensorType& type, std::string_view name, const TensorType& reference, std::string_view reference_name) {
  return ExpectDType(type, name, type.dtype == reference.dtype,
                     std::string(Name(reference.dtype)) + " as " + std::string(reference_name) + " has");
}

Status ExpectShape(const TensorType& type, std::string_view name, const Shape& expected) {
  if (type.shape == expected) return {};
  return Fail(Text(name) + " has shape " + ToString(type.shape) + ", expected " + ToString(expected));
}

Result<DType> DTypeAttribute(const Attributes& attributes, std::string_view name, DType fallback) {
  const std::string text = StringAttribute(attributes, name, "");
  if (text.empty()) return fallback;
  if (const std::optional<DType> dtype = DTypeFromName(text)) return *dtype;
  return Fail("attribute '" + std::string(name) + "' is \"" + text + "\", expected the name of a dtype such as \"float32\"");
}

Status ExpectOutDType(const Attributes& attributes, const TensorType& data) {
  const DType dtype = COLLAGE_TRY(DTypeAttribute(attributes, "out_dtype", data.dtype));
  if (dtype == data.dtype) return {};
  return Fail("attribute 'out_dtype' is \"" + Text(Name(dtype)) + "\", expected \"" + Text(Name(data.dtype)) + "\", the dtype of data");
}

Result<size_t> NormaliseAxis(int64_t axis, size_t rank, std::string_view name) {
  const auto limit = static_cast<int64_t>(rank);
  if (axis >= -limit && axis < limit) return static_cast<size_t>(axis < 0 ? axis + limit : axis);
  return Fail("attribute '" + std::string(name) + "' is " + std::to_string(axis) + ", expected an axis in [" + std::to_string(-limit) +
              ", " + std::to_string(limit) + ")");
}

Result<std::vector<size_t>> NormaliseAxes(const std::vector<int64_t>& axes, size_t rank, std::string_view name) {
  std::vector<size_t> normalised;
  for (int64_t axis : axes) {
    const size_t index = COLLAGE_TRY(NormaliseAxis(axis, rank, name));
    if (std::find(normalised.begin(), normalised.end(), index) != normalised.end()) {
      return Fail("attribute '" + std::string(name) + "' names axis " + std::to_string(index) + " twice, expected different axes");
    }
    normalised.push_back(index);
  }
  return normalised;
}

size_t AxisAttribute(const Attributes& attributes, std::string_view name, int64_t fallback, size_t rank) {
  return Checked(NormaliseAxis(IntAttribute(attributes, name, fallback), rank, name));
}

Result<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.size(), b.size());
  Shape result(rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    const int64_t y = i + b.size() < rank ? 1 : b[i + b.size() - rank];
    if (x != y && x != 1 && y != 1) {
      return Fail("shapes " + ToString(a) + " and " + ToString(b) +
                  " do not broadcast, expected extents that are equal or 1 when aligned from the last dimension");
    }
    result[i] = x == 1 ? y : x;
  }
  return result;
}

double ByteCount(const Type& type) {
  double bytes = 0;
  for (const TensorType& tensor : FlattenTensors(type)) bytes += static_cast<double>(tensor.ByteCount());
  return bytes;
}

double ElementCount(const Type& type) {
  double count = 0;
  for (const TensorType& tensor : FlattenTensors(type)) count += static_cast<double>(tensor.ElementCount());
  return count;
}

OpDef::WorkRule WorkPerOutput(double flops) {
  return [flops](TypeArguments arguments, const Type& result, const Attributes&) {
    Work work{flops * ElementCount(result), ByteCount(result)};
    for (const Type& argument : arguments) work.bytes += ByteCount(argument);
    return work;
  };
}

Work MoveWork(TypeArguments, const Type& result, const Attributes&) { return {0, 2 * ByteCount(result)}; }

Work NoWork(TypeArguments, const Type&, const Attributes&) { return {0, 0}; }

}  // namespace collage
