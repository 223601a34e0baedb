#include "collage/query/constants.h"

#include <charconv>
#include <map>

namespace collage {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 28;

Status Flatten(const JsonReader& value, std::vector<double>& numbers) {
  if (value.IsList()) {
    for (const JsonReader& item : COLLAGE_TRY(value.Items())) COLLAGE_TRY_STATUS(Flatten(item, numbers));
    return {};
  }
  if (value.value().is_boolean()) {
    numbers.push_back(value.value().get<bool>() ? 1 : 0);
    return {};
  }
  numbers.push_back(COLLAGE_TRY(value.Number()));
  return {};
}

Shape ShapeOfNested(const Json& value) {
  Shape shape;
  for (const Json* at = &value; at->is_array(); at = &at->front()) {
    shape.push_back(static_cast<int64_t>(at->size()));
    if (at->empty()) break;
  }
  return shape;
}

}  // namespace

Result<Tensor> ReadTensor(const JsonReader& entry) {
  if (!entry.IsObject()) return entry.Expected("an object with shape, dtype, and fill or value");
  COLLAGE_TRY_STATUS(entry.OnlyFields({"name", "index", "shape", "dtype", "fill", "value"}));
  TensorType type;
  const std::string dtype = COLLAGE_TRY(entry.StringOr("dtype", "float32"));
  const std::optional<DType> known = DTypeFromName(dtype);
  if (!known) return COLLAGE_TRY(entry.At("dtype")).Wrong("there is no dtype \"" + dtype + "\"");
  type.dtype = *known;
  if (entry.Has("shape") || !entry.Has("value")) {
    type.shape = COLLAGE_TRY(COLLAGE_TRY(entry.At("shape")).Integers());
  } else {
    type.shape = ShapeOfNested(entry.value()["value"]);
  }
  int64_t count = 1;
  for (const int64_t extent : type.shape) {
    if (extent < 0 || (extent > 0 && count > kMostElements / extent))
      return entry.Wrong("shape " + ToString(type.shape) + " is negative or too large");
    count *= extent;
  }
  std::vector<double> numbers;
  if (entry.Has("value")) {
    COLLAGE_TRY_STATUS(Flatten(COLLAGE_TRY(entry.At("value")), numbers));
  } else if (entry.Has("fill")) {
    COLLAGE_TRY_STATUS(Flatten(COLLAGE_TRY(entry.At("fill")), numbers));
  }
  Tensor tensor(type);
  if (numbers.empty()) return tensor;
  if (numbers.size() != 1 && static_cast<int64_t>(numbers.size()) != count) {
    return entry.Wrong("the value has " + std::to_string(numbers.size()) + " elements, expected " + std::to_string(count) + " for shape " +
                       ToString(type.shape));
  }
  // Narrow types have no element type of C++: their constants stay zero.
  VisitElementType(type.dtype, [&](auto element) {
    auto* data = tensor.MutableData<decltype(element)>();
    for (int64_t i = 0; i < count; ++i) data[i] = static_cast<decltype(element)>(numbers[numbers.size() == 1 ? 0 : static_cast<size_t>(i)]);
  });
  return tensor;
}

Result<ConstantTable> ReadConstants(const JsonReader& entry) {
  ConstantTable table;
  if (!entry.Has("constants")) return table;
  const JsonReader constants = COLLAGE_TRY(entry.At("constants"));
  if (constants.IsNull()) return table;
  table.is_given = true;
  if (!constants.IsObject()) {
    for (const JsonReader& item : COLLAGE_TRY(constants.Items())) table.tensors.push_back(COLLAGE_TRY(ReadTensor(item)));
    return table;
  }
  constexpr size_t kMostConstants = 100'000;
  for (const auto& [name, value] : COLLAGE_TRY(constants.Fields())) {
    const std::string digits = name.starts_with("const:") ? name.substr(6) : name;
    size_t index = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error != std::errc() || end != digits.data() + digits.size() || index > kMostConstants) {
      return value.Wrong("expected the number of a constant, such as \"0\" or \"const:0\"");
    }
    if (index >= table.tensors.size()) table.tensors.resize(index + 1, Tensor(TensorType{}));
    table.tensors[index] = COLLAGE_TRY(ReadTensor(value));
  }
  return table;
}

}  // namespace collage
